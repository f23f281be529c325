"""Typed tables: schemas made from the columns that changes state, and what statements make of them."""
