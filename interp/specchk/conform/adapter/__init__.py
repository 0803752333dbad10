"""The interface for implementations in any language."""

from specchk.conform.adapter.process import ProcessBinding, request
from specchk.conform.adapter.remote import RemoteSystem

__all__ = ["ProcessBinding", "RemoteSystem", "request"]
