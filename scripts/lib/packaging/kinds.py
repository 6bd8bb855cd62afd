"""One function for each kind of package. Each takes the tree of files and gives the package's bytes."""

import base64
import hashlib
import json
import os

from archives import File, ar, folders, gz, tar, xz, zipped

# The name of the packages in the registries of npm and Python.
REGISTRY_NAME = "baton-agents"
SUMMARY = "Mail, jobs and approvals between coding agents; nothing is lost or doubled"
LICENCE = "MIT OR Apache-2.0"
MAINTAINER = "baton maintainers <maintainers@baton.invalid>"

# What each system calls a target. The program on Linux is static, so it runs with any C library.
TARGETS = {
    "x86_64-unknown-linux-gnu": {
        "deb": "amd64",
        "npm": ("linux", "x64"),
        "wheel": ["manylinux_2_17_x86_64", "musllinux_1_1_x86_64"],
    },
    "aarch64-unknown-linux-gnu": {
        "deb": "arm64",
        "npm": ("linux", "arm64"),
        "wheel": ["manylinux_2_17_aarch64", "musllinux_1_1_aarch64"],
    },
    "x86_64-apple-darwin": {"npm": ("darwin", "x64"), "wheel": ["macosx_10_12_x86_64"]},
    "aarch64-apple-darwin": {"npm": ("darwin", "arm64"), "wheel": ["macosx_11_0_arm64"]},
}


def marked(tree, kind, name=""):
    """The tree with the mark that `baton update` reads; see crates/core/src/installed.rs."""
    mark = f"{tree['bin/baton'].sha256()} {kind} {name}".rstrip() + "\n"
    return {**tree, "lib/baton/installed-by": File(mark)}


def tarball(release, tree):
    """A folder with a program that runs from anywhere."""
    folder = f"baton-{release.version}-{release.target}"
    return f"{folder}.tar.gz", gz(tar(marked(tree, "tarball"), release.epoch, folder + "/"))


def deb(release, tree):
    """A package for dpkg. It depends on nothing, and runs no script when it is installed."""
    architecture = TARGETS[release.target].get("deb")
    if not architecture:
        return None
    tree = marked(tree, "deb")
    files = {"./usr/" + place(path): file for path, file in tree.items()}
    size = sum((len(file.data) + 1023) // 1024 for file in files.values()) + len(folders(files))
    control = (
        f"Package: baton\nVersion: {release.version}\nArchitecture: {architecture}\n"
        f"Maintainer: {MAINTAINER}\nInstalled-Size: {size}\nSection: devel\nPriority: optional\n"
        f"Suggests: git, tmux\nDescription: {SUMMARY}\n"
        " One program that lets the coding agents in your terminals message each other,\n"
        " hand each other work and ask you for permission.\n"
    )
    sums = "".join(
        f"{hashlib.md5(files[path].data).hexdigest()}  {path[2:]}\n" for path in sorted(files)
    )
    about = {"./control": File(control), "./md5sums": File(sums)}
    members = [
        ("debian-binary", b"2.0\n"),
        ("control.tar.xz", xz(tar(about, release.epoch))),
        ("data.tar.xz", xz(tar(files, release.epoch))),
    ]
    return f"baton_{release.version}_{architecture}.deb", ar(members, release.epoch)


def place(path):
    """Where Debian has a file: completions of zsh go elsewhere."""
    return path.replace("share/zsh/site-functions/", "share/zsh/vendor-completions/")


def npm_name(target):
    return "-".join([REGISTRY_NAME, *TARGETS[target]["npm"]])


def npm_platform(release, tree):
    """The program for one system. npm takes the package only on that system."""
    system, processor = TARGETS[release.target]["npm"]
    name = npm_name(release.target)
    about = npm_about(release, name) | {"os": [system], "cpu": [processor]}
    files = marked(tree, "npm", REGISTRY_NAME) | {
        "package.json": File(json.dumps(about, indent=2) + "\n"),
        "README.md": File(f"The program of {REGISTRY_NAME} for {system} on {processor}. Install {REGISTRY_NAME}.\n"),
    }
    return f"{name}-{release.version}.tgz", gz(tar(files, release.epoch, "package/"))


def npm_launcher(release, targets):
    """The package that a person installs. It has no install script: npm chooses the platform's package."""
    programs = {"-".join(TARGETS[target]["npm"]): npm_name(target) for target in sorted(targets)}
    about = npm_about(release, REGISTRY_NAME) | {
        "bin": {"baton": "bin/baton.js"},
        "engines": {"node": ">=18"},
        "optionalDependencies": {name: release.version for name in programs.values()},
    }
    launcher = release.template("npm/baton.js").replace("@PROGRAMS@", json.dumps(programs))
    files = {
        "package.json": File(json.dumps(about, indent=2) + "\n"),
        "bin/baton.js": File(launcher, program=True),
        "README.md": File(release.read("README.md")),
    }
    files |= {name: File(release.read(name)) for name in ("LICENSE-APACHE", "LICENSE-MIT")}
    return f"{REGISTRY_NAME}-{release.version}.tgz", gz(tar(files, release.epoch, "package/"))


def npm_about(release, name):
    return {"name": name, "version": release.version, "description": SUMMARY, "license": LICENCE}


def wheel(release, tree):
    """A wheel whose scripts folder holds the program. No Python of ours runs when it is installed."""
    name = REGISTRY_NAME.replace("-", "_")
    stem = f"{name}-{release.version}"
    tags = TARGETS[release.target]["wheel"]
    files = {}
    for path, file in sorted(marked(tree, "wheel", REGISTRY_NAME).items()):
        scheme = "scripts/baton" if path == "bin/baton" else "data/" + path
        files[f"{stem}.data/{scheme}"] = file
    metadata = (
        f"Metadata-Version: 2.4\nName: {REGISTRY_NAME}\nVersion: {release.version}\nSummary: {SUMMARY}\n"
        f"License-Expression: {LICENCE}\nLicense-File: LICENSE-APACHE\nLicense-File: LICENSE-MIT\n"
        f"Requires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n{release.read('README.md')}"
    )
    head = "Wheel-Version: 1.0\nGenerator: baton\nRoot-Is-Purelib: false\n"
    info = f"{stem}.dist-info"
    files[f"{info}/METADATA"] = File(metadata)
    files[f"{info}/WHEEL"] = File(head + "".join(f"Tag: py3-none-{tag}\n" for tag in tags))
    for licence in ("LICENSE-APACHE", "LICENSE-MIT"):
        files[f"{info}/licenses/{licence}"] = File(release.read(licence))
    record = "".join(f"{path},sha256={wheel_hash(file)},{len(file.data)}\n" for path, file in files.items())
    files[f"{info}/RECORD"] = File(record + f"{info}/RECORD,,\n")
    return f"{stem}-py3-none-{'.'.join(tags)}.whl", zipped(list(files.items()), release.epoch)


def wheel_hash(file):
    return base64.urlsafe_b64encode(hashlib.sha256(file.data).digest()).rstrip(b"=").decode()


def plugins(release):
    """The plugins for the agents' own installers: `plugins/` of the tree."""
    files = {}
    for folder, _, names in os.walk(os.path.join(release.root, "plugins")):
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), release.root)
            files[path.removeprefix("plugins/")] = File(release.read(path))
    folder = f"baton-plugins-{release.version}"
    return f"{folder}.tar.gz", gz(tar(files, release.epoch, folder + "/"))


def installer(release, sums):
    """The shell installer, which knows the checksums of the tarballs of its release."""
    known = "\n".join(f"{sum} {name}" for name, sum in sorted(sums.items()))
    text = release.template("install.sh").replace("@SUMS@", known)
    return "install.sh", text.replace("@BASE_URL@", release.base_url).replace("@VERSION@", release.version)


def formula(release, sums):
    """The formula for Homebrew."""
    blocks = []
    for system, names in (("linux", "unknown-linux-gnu"), ("macos", "apple-darwin")):
        inner = []
        for processor, name in (("intel", "x86_64"), ("arm", "aarch64")):
            file = f"baton-{release.version}-{name}-{names}.tar.gz"
            if file in sums:
                inner.append(
                    f"    on_{processor} do\n"
                    f'      url "{release.base_url}/{file}"\n      sha256 "{sums[file]}"\n    end\n'
                )
        if inner:
            blocks.append(f"  on_{system} do\n{''.join(inner)}  end\n")
    text = release.template("baton.rb").replace("@DOWNLOADS@", "\n".join(blocks).rstrip("\n"))
    text = text.replace("@SUMMARY@", SUMMARY).replace("@BASE_URL@", release.base_url)
    return "baton.rb", text.replace("@VERSION@", release.version)
