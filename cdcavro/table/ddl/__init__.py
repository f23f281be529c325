"""Statements: DDL text parsed into the steps that it asks for."""
