"""The soak: everything that may happen to Bullpen, at random, for as long as one likes.

Two controllers, pools in several namespaces, claims of all kinds, kills, roll-outs, guests that fail, people
who meddle. It judges by what is to be seen from outside: the auditor, the books at rest, logs and memory.
It must never look into a controller to find it innocent, nor repeat what failed until it passes.
"""
