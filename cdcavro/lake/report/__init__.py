"""What became of all messages of a job since its first batch: an account in a file, and a page for people."""

from cdcavro.lake.report.account import Account, BatchFacts, Reject, Version
from cdcavro.lake.report.account_file import AccountFile
from cdcavro.lake.report.page import write_report
from cdcavro.lake.report.watch import VersionWatch

__all__ = ["Account", "AccountFile", "BatchFacts", "Reject", "Version", "VersionWatch", "write_report"]
