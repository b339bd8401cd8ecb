"""`kubectl bullpen …`: what an operator asks of a cluster that Bullpen works on.

It only reads the cluster, and shares nothing with the controller, which may be what is wrong, but the pure
engine that says how much to keep warm: a back-test asks what that would have said.
"""
