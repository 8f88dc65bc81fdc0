"""Figures of a plan in words."""

Number = float | int


def counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def size(count: Number) -> str:
    """Bytes in words."""
    for unit, power in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= power:
            return f"{count / power:,.2f} {unit}"
    return f"{count:,.0f} B"


def seconds(count: Number) -> str:
    return f"{count:,.3f} s" if count >= 1 else f"{count * 1e3:,.2f} ms"
