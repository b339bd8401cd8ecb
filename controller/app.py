"""The controller process: takes the lease, watches, hosts, and stops in an orderly way. Wiring alone."""

import asyncio
import gc
import logging
import signal
import sys
from contextlib import suppress

import kopf
import structlog

from controller.claims.resync import Resync
from controller.claims.world import AnyReflector, World
from controller.handlers import make_registry, make_settings
from controller.kube.client import ApiClient
from controller.kube.config import load_config
from controller.kube.lease import LeaderElection
from controller.metrics import ILLEGAL, LEADING, REQUEST_SECONDS, REQUESTS
from controller.pools.host import PoolHost
from controller.probes import Probes
from controller.settings import Settings
from crds.durations import seconds
from statemachines.base import IllegalTransition, set_illegal_hook

log = structlog.get_logger()

KOPF_ENDS = 1.0  # s that kopf may take to close its watches; it would wait longer for tasks of ours
# s: kopf closes its connections without waiting for the server's farewell, and tells nobody of them.
FAREWELL = 0.25
LOST_LEASE = 3  # exit code: the process is to be started anew, as a standby


class App:
    """One controller. `run` returns the exit code."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        config = load_config(settings.kubeconfig)
        duration = seconds(settings.lease_duration)
        # A write is sent only while the lease outlives it, and just before a renewal a third of it is gone.
        self.client = ApiClient(
            config, max_writes_in_flight=settings.max_writes_in_flight, timeout=min(6.0, duration / 3)
        )
        self.lease = LeaderElection(
            self.client,
            settings.lease_namespace or config.namespace,
            settings.lease_name,
            settings.identity,
            duration=duration,
            renew=duration / 3,
        )
        self.world = World(self.client, settings.max_hand_overs)
        self.host = PoolHost(self.world, seconds(settings.brake_delay))
        self.stopping = asyncio.Event()
        self.state = "starting"
        self.probes = Probes(lambda: "", self._not_ready)

    async def run(self) -> int:
        """Until a signal, or until the lease is lost."""
        self._listen_to_signals()
        self.client.on_request = _count_request
        set_illegal_hook(_count_illegal)
        await self.probes.start(self.settings.listen)
        try:
            self.state = ""  # a standby is ready: a roll-out waits for it before it stops the leader
            if not await self._until_stopped(self.lease.acquire()):
                return 0
            self.client.lease_left = self.lease.time_left
            LEADING.set(1)
            return await self._lead()
        finally:
            await self.probes.stop()
            await self.client.close()
            await asyncio.sleep(FAREWELL)

    async def _lead(self) -> int:
        """Watch, and when the lists are complete, go to work; stop when told to or when the lease is lost."""
        self.state = "reading the cluster"
        log.info("leading", identity=self.settings.identity)
        reflectors = list(self.world.reflectors())
        watching = [asyncio.create_task(each.run()) for each in reflectors]
        operator = asyncio.create_task(self._host_pools())
        holding = asyncio.create_task(self.lease.hold())
        stopping = asyncio.create_task(self.stopping.wait())
        resync = Resync(self.client, self.world.claims, seconds(self.settings.resync_interval))
        self.world.desk.start(resync.run())
        synced = asyncio.create_task(self._begin_when_synced(reflectors))
        try:
            ended, _ = await asyncio.wait(
                {holding, stopping, operator, *watching}, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            clean = stopping.done() and not holding.done()
            self.world.stop()
            await self.host.stop(say=clean)
            tasks = (synced, *watching, holding, stopping)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            LEADING.set(0)
            if clean:
                with suppress(Exception):
                    await self.lease.release()
            self.stopping.set()  # kopf ends by it; cancelled in the midst of that, it leaves connections open
            await asyncio.wait({operator}, timeout=KOPF_ENDS)
            operator.cancel()
            await asyncio.gather(operator, return_exceptions=True)
        if clean:
            log.info("stopped")
            return 0
        for task in ended:
            if not task.cancelled() and (error := task.exception()) is not None:
                log.error("ended by an error", exc_info=error)
        log.error("not leading any more: nothing is written; start it again to stand by")
        return LOST_LEASE

    async def _begin_when_synced(self, reflectors: list[AnyReflector]) -> None:
        for each in reflectors:
            await each.synced.wait()
        gc.collect()
        gc.freeze()  # what was listed lives long: collections over it are the tail of the latency
        gc.set_threshold(50_000, 20, 50)
        self.world.begin()
        self.host.begin()
        self.state = ""
        log.info("ready", vms=len(self.world.vms), claims=len(self.world.claims))

    async def _host_pools(self) -> None:
        for each in ("kopf", "aiohttp", "asyncio"):
            logging.getLogger(each).setLevel(logging.WARNING)
        ready = asyncio.Event()
        ours = asyncio.create_task(self._signals_are_ours(ready))
        await kopf.operator(
            registry=make_registry(self.host, self.client.config),
            settings=make_settings(),
            # Else kopf asks for the user's name, and in a container the user has none.
            identity=self.settings.identity,  # type: ignore[arg-type]  # kopf exports its NewType nowhere
            clusterwide=True,
            standalone=True,
            stop_flag=self.stopping,
            ready_flag=ready,
        )
        ours.cancel()
        self.stopping.set()  # it ended, by a signal that came before they were ours again

    def _listen_to_signals(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self.stopping.set)

    async def _signals_are_ours(self, kopf_is_ready: asyncio.Event) -> None:
        """Kopf takes the signals over when it starts, and takes seconds to end on one."""
        await kopf_is_ready.wait()
        self._listen_to_signals()

    async def _until_stopped(self, work: object) -> bool:
        """Whether the work was done before a signal came."""
        doing = asyncio.ensure_future(work)  # type: ignore[call-overload]
        stopping = asyncio.create_task(self.stopping.wait())
        await asyncio.wait({doing, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if doing.done():
            doing.result()
            return True
        doing.cancel()
        return False

    def _not_ready(self) -> str:
        return self.state or self.lease.trouble


def _count_request(step: str, status: int, took: float) -> None:
    REQUESTS.labels(step, str(status)).inc()
    REQUEST_SECONDS.labels(step).observe(took)


def _count_illegal(refused: IllegalTransition) -> None:
    ILLEGAL.labels(refused.kind).inc()
    log.error("illegal transition refused", why=str(refused))


def configure_logging(settings: Settings) -> None:
    """Structured lines on stderr: text on a terminal, JSON elsewhere."""
    as_text = settings.log_format == "text" or (settings.log_format == "auto" and sys.stderr.isatty())
    renderer = structlog.dev.ConsoleRenderer() if as_text else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(settings.log_level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(name)s: %(message)s")
