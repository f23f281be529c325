cpdef check_images(object change, str before, str after, object index=*)
cpdef check_operation(object change)
