#!/bin/sh
# Installs baton @VERSION@ below ~/.local, or below $BATON_PREFIX. It needs no rights, and neither runs nor
# installs anything whose SHA-256 is not the one below.
#
#   sh install.sh            install, or replace an older one, also while it runs
#   sh install.sh --remove   remove the files that this script installed
set -eu

version='@VERSION@'
base="${BATON_BASE_URL:-@BASE_URL@}"
prefix="${BATON_PREFIX:-$HOME/.local}"
sums='@SUMS@'

fail() {
    echo "error: $1" >&2
    exit 1
}

list="$prefix/lib/baton/files"
if [ "${1:-}" = --remove ]; then
    [ -f "$list" ] || fail "nothing that this script installed is below $prefix"
    # The list names itself last.
    while IFS= read -r file; do rm -f "$prefix/$file"; done <"$list"
    rm -f "$list"
    for folder in lib/baton share/doc/baton; do rmdir "$prefix/$folder" 2>/dev/null || true; done
    echo "removed from $prefix; \`baton setup --remove\` should have come first, if agents were set up"
    exit 0
fi
[ $# -eq 0 ] || fail "unknown argument $1"

case "$(uname -s) $(uname -m)" in
'Linux x86_64') target=x86_64-unknown-linux-gnu ;;
'Linux aarch64' | 'Linux arm64') target=aarch64-unknown-linux-gnu ;;
'Darwin x86_64') target=x86_64-apple-darwin ;;
'Darwin arm64') target=aarch64-apple-darwin ;;
*) fail "there is no package for $(uname -s) on $(uname -m); build it from source" ;;
esac
folder="baton-$version-$target"
wanted="$(printf '%s\n' "$sums" | sed -n "s/ $folder\\.tar\\.gz\$//p")"
[ -n "$wanted" ] || fail "this release has no package for $target"

scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' INT TERM HUP
file="$scratch/$folder.tar.gz"
if command -v curl >/dev/null 2>&1; then
    curl -fsSL -o "$file" "$base/$folder.tar.gz" || fail "$base/$folder.tar.gz could not be fetched"
elif command -v wget >/dev/null 2>&1; then
    wget -q -O "$file" "$base/$folder.tar.gz" || fail "$base/$folder.tar.gz could not be fetched"
else
    fail "neither curl nor wget is there to fetch it"
fi

if command -v sha256sum >/dev/null 2>&1; then
    found="$(sha256sum "$file")"
else
    found="$(shasum -a 256 "$file")"
fi
found="${found%% *}"
[ "$found" = "$wanted" ] || fail "$folder.tar.gz has SHA-256 $found, and not $wanted; nothing was installed"

tar -xzf "$file" -C "$scratch"
# The mark by which \`baton update\` knows this copy.
sed "s|tarball\$|installer $base|" "$scratch/$folder/lib/baton/installed-by" >"$scratch/mark"
mv "$scratch/mark" "$scratch/$folder/lib/baton/installed-by"
(cd "$scratch/$folder" && find . -type f | sed 's|^\./||' | sort) >"$scratch/files"
while IFS= read -r name; do
    mkdir -p "$prefix/$(dirname "$name")"
    # A new file takes the place of the old one at once: a program that runs keeps the old one.
    cp "$scratch/$folder/$name" "$prefix/$name.new.$$"
    mv -f "$prefix/$name.new.$$" "$prefix/$name"
done <"$scratch/files"
cp "$scratch/files" "$list"

echo "installed $("$prefix/bin/baton" --version) in $prefix/bin"
case ":$PATH:" in
*":$prefix/bin:"*) echo "next: baton setup" ;;
*) echo "next: put $prefix/bin on your PATH, then run: baton setup" ;;
esac
