"""Statements: DDL text to the steps that it asks for."""
