"""Archives with the same bytes for the same files: sorted, without owners, all of one time."""

import gzip
import hashlib
import io
import lzma
import tarfile
import time
import zipfile


class File:
    """A file of a package: its bytes and whether it is a program."""

    def __init__(self, data, program=False):
        self.data = data.encode() if isinstance(data, str) else data
        self.mode = 0o755 if program else 0o644

    def sha256(self):
        return hashlib.sha256(self.data).hexdigest()


def folders(paths):
    """The folders above these paths, each once, the outer one first."""
    found = set()
    for path in paths:
        parts = path.split("/")[:-1]
        found.update("/".join(parts[: n + 1]) for n in range(len(parts)))
    return sorted(found)


def tar(files, epoch, prefix=""):
    """An uncompressed tar archive of `files`, a dict from path to File."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        files = {prefix + path: file for path, file in files.items()}

        def add(path, mode, kind, data=b""):
            entry = tarfile.TarInfo(path)
            entry.mode, entry.mtime, entry.type, entry.size = mode, epoch, kind, len(data)
            entry.uname = entry.gname = "root"
            archive.addfile(entry, io.BytesIO(data))

        for folder in folders(files):
            if folder not in (".", ""):
                add(folder, 0o755, tarfile.DIRTYPE)
        for path in sorted(files):
            add(path, files[path].mode, tarfile.REGTYPE, files[path].data)
    return out.getvalue()


def gz(data):
    out = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=out, mtime=0) as stream:
        stream.write(data)
    return out.getvalue()


def xz(data):
    return lzma.compress(data, format=lzma.FORMAT_XZ, preset=6)


def ar(members, epoch):
    """The outer archive of a Debian package."""
    out = b"!<arch>\n"
    for name, data in members:
        out += f"{name:<16}{epoch:<12}{0:<6}{0:<6}{0o100644:<8o}{len(data):<10}`\n".encode()
        out += data + b"\n" * (len(data) % 2)
    return out


def zipped(files, epoch):
    out = io.BytesIO()
    # The format begins in 1980.
    moment = time.gmtime(max(epoch, 315532800))[:6]
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for path, file in files:
            entry = zipfile.ZipInfo(path, moment)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix: the mode counts.
            entry.external_attr = (0o100000 | file.mode) << 16
            archive.writestr(entry, file.data)
    return out.getvalue()
