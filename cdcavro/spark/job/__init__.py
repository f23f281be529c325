"""The main job: files of messages to container files and rejects."""
