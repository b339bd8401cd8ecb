"""`kubectl bullpen …`: what an operator asks of a cluster that Bullpen works on.

It only reads the cluster, and shares nothing with the controller: that may be what is wrong.
"""
