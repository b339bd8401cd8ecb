"""What one answer of a list looks like, of whatever kind: its items, and how it goes on."""

import msgspec

from controller.kube.errors import UnknownOutcome
from controller.kube.objects import KubeObject


class ListMeta(msgspec.Struct, rename={"resource_version": "resourceVersion", "next": "continue"}):
    """The version that the whole list is of, and where the next page is asked for; empty: there is none."""

    resource_version: str
    next: str = ""


class RawPage(msgspec.Struct):
    """A page with its items as they came."""

    metadata: ListMeta
    items: list[msgspec.Raw] = []


class MetadataPage(msgspec.Struct):
    """A page of a list of metadata alone. Where there are no items, they are null."""

    metadata: ListMeta
    items: list[KubeObject] | None = None


_METADATA_PAGES = msgspec.json.Decoder(MetadataPage)


def metadata_page(body: bytes) -> MetadataPage:
    """A page of metadata.

    Raises:
        UnknownOutcome: that was no list; a proxy may have said it.
    """
    try:
        return _METADATA_PAGES.decode(body)
    except msgspec.MsgspecError as error:
        raise UnknownOutcome(message=f"not a list: {error}") from error
