"""Where jobs are computed: processes on this machine, or a Ray cluster. Both give the same results."""
