"""`python -m simulator kubevirt …`: flags, start, and a clean stop on SIGTERM or Ctrl-C."""

import argparse
import asyncio
import logging
import re
import signal
import sys
from random import Random
from typing import Final

import uvloop

from crds.durations import seconds
from simulator.api import Api, ApiError, Cluster, ClusterError, load_cluster
from simulator.kubevirt.behaviour import KNOWN_INSTANCETYPES, MISSING, Defaults, Failure, Profile
from simulator.kubevirt.distributions import FORMS, REALISTIC, parse
from simulator.kubevirt.hands import Hands
from simulator.kubevirt.nodes import Nodes
from simulator.kubevirt.placement import Placement
from simulator.kubevirt.world import World

log = logging.getLogger("simulator")
_NODE_GRACE: Final = {
    False: "1s",
    True: "40s",
}  # without and with Node objects (40 s is the node controller's)

EPILOG: Final = f"""\
times: {FORMS}

annotations, on the VM or on its template (spec.template.metadata), one VM against the flags:
  simulator.bullpen.dev/boot: 500ms            how long its boots take
  simulator.bullpen.dev/shutdown: 2s           how long its guest takes to shut down
  simulator.bullpen.dev/status-lag: 5s         how far the VM's status trails its VMI
  simulator.bullpen.dev/agent: 300ms           the guest agent connects that long after Ready
  simulator.bullpen.dev/fail: KIND             {", ".join(Failure)}
  simulator.bullpen.dev/crash-after: 2s        its guest crashes once, that long after Ready
  simulator.bullpen.dev/shutdown-after: 2s     its guest shuts itself down once, likewise
  simulator.bullpen.dev/pause: "true"          paused for as long as it is there (on the VM)

A spec that KubeVirt accepts and never runs fares here as there: a bad label in the template, no memory,
an instancetype other than {", ".join(sorted(KNOWN_INSTANCETYPES))}, a container disk without an image,
a PersistentVolumeClaim or Secret whose name begins with "{MISSING}".

It prints "ready" when it knows every VM there is.
"""


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "kubevirt",
        help="walk VirtualMachines through KubeVirt's writes",
        description="A stand-in for KubeVirt: gives each VirtualMachine the life, write by write, that the "
        "real virt-controller was observed to give it. No guest runs.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--kubeconfig", metavar="FILE", help="default: KUBECONFIG, else the pod's credentials")
    add("--boot", metavar="TIME", default="1s", help="from created to running (default: %(default)s)")
    add(
        "--realistic",
        dest="boot",
        action="store_const",
        const=REALISTIC,
        help=f"boots as on real clusters: --boot {REALISTIC}",
    )
    add("--shutdown", metavar="TIME", default="100ms", help="a guest's shutdown (default: %(default)s)")
    add("--status-lag", metavar="TIME", default="0s", help="VM status behind its VMI (default: %(default)s)")
    add("--agent", metavar="TIME", help="guest agents connect that long after Ready (default: never)")
    add(
        "--profile",
        choices=list(Profile),
        default=Profile.OBSERVED,
        type=Profile,
        help="observed: KubeVirt's order of writes; minimal: one POST of a VMI that is Ready, for benchmarks "
        "(default: %(default)s)",
    )
    add(
        "--fail",
        metavar="KIND=SHARE",
        action="append",
        default=[],
        type=_share,
        help=f"let this share (0..1) of the VMs fail; again for more kinds: {', '.join(Failure)}",
    )
    add(
        "--back-off",
        metavar="TIME",
        default="10s",
        help="first wait after a failed start (default: %(default)s)",
    )
    add(
        "--nodes", metavar="N", type=int, default=0, help="create N Nodes and renew their leases (default: 0)"
    )
    add("--room", metavar="N", type=int, default=0, help="VMs a node takes (default: 0, as many as come)")
    add("--node-grace", metavar="TIME", help="lost node to VMI not Ready (default: 1s, with --nodes 40s)")
    add("--writes-in-flight", metavar="N", type=int, default=32, help="at most (default: %(default)s)")
    add("--verbose", action="store_true", help="log every refused write")
    parser.set_defaults(run=run)


def defaults_of(options: argparse.Namespace) -> Defaults:
    """Raises ValueError with a sentence for a time that cannot be read."""
    return Defaults(
        profile=options.profile,
        boot=parse(options.boot),
        shutdown=parse(options.shutdown),
        status_lag=parse(options.status_lag),
        agent=parse(options.agent) if options.agent else None,
        back_off=seconds(options.back_off),
        node_grace=seconds(options.node_grace or _NODE_GRACE[options.nodes > 0]),
        failures=dict(options.fail),
    )


def run(options: argparse.Namespace) -> int:
    logging.basicConfig(
        level=logging.DEBUG if options.verbose else logging.INFO,
        stream=sys.stderr,
        format="%(asctime)s simulator %(levelname)s %(message)s",
    )
    try:
        defaults, cluster = defaults_of(options), load_cluster(options.kubeconfig)
    except (ValueError, ClusterError) as error:
        log.error("%s", error)
        return 2
    return uvloop.run(_serve(options, defaults, cluster))


async def _serve(options: argparse.Namespace, defaults: Defaults, cluster: Cluster) -> int:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    random = Random()
    placement = Placement(options.nodes, random, options.room)
    async with Api(cluster) as api:
        hands = Hands(api, placement, options.writes_in_flight)
        world = World(api, hands, defaults, random)
        nodes = Nodes(api, placement) if options.nodes else None
        try:
            async with asyncio.TaskGroup() as group:
                work = [group.create_task(world.run()), group.create_task(_announce(world, nodes))]
                await stop.wait()
                for task in work:
                    task.cancel()
        except* ApiError as errors:
            log.error("%s", errors.exceptions[0])
    total = ", ".join(f"{verb} {number}" for verb, number in sorted(hands.writes.items()))
    log.info("stopped; writes: %s", total or "none")
    return 0 if stop.is_set() else 1


async def _announce(world: World, nodes: Nodes | None) -> None:
    await world.synced.wait()
    if nodes is not None:
        await nodes.create()
    print("ready", flush=True)  # noqa: T201 - the one line that whoever started us waits for
    if nodes is not None:
        await nodes.renew()


def _share(text: str) -> tuple[Failure, float]:
    kind, _, share = text.partition("=")
    if kind not in list(Failure) or not re.fullmatch(r"0|1|[01]?\.[0-9]+", share) or float(share) > 1:
        raise argparse.ArgumentTypeError(
            f"{text!r}: write KIND=SHARE with a share from 0 to 1 and one of {', '.join(Failure)}"
        )
    return Failure(kind), float(share)
