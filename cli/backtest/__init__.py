"""`kubectl bullpen backtest`: what other sizes of a pool would have done with the claims that came.

`study` has the numbers, `table` and `page` show them, `command` asks for them.
"""
