"""Where the objects of a kind are on the API server."""


def collection(path: str, namespace: str = "") -> str:
    """The collection of a kind in one namespace; in all of them without one, which is `path` itself."""
    group, _, plural = path.rpartition("/")
    return f"{group}/namespaces/{namespace}/{plural}" if namespace else path
