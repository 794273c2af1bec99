"""Experiments: tables of many fits, each computed once, compared with the published figures."""
