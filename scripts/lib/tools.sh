# What the scripts need on the machine, and how it gets there. Sourced, not run.

say() { printf '\n== %s\n' "$*"; }

# Outside the checkout, so that a clean clone finds it again.
cache="${BATON_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/baton-test}"

# The versions that the adapters were verified with.
claude_version=2.1.325
codex_version=0.166.0
opencode_version=1.18.33
gemini_version=0.61.0
copilot_version=1.0.102
pi_version=0.87.1
# What Pi runs on; the others are content with Debian's.
node_version=22.22.0

# Debian packages that provide commands: command:package …
need_packages() {
    local missing=() pair
    for pair in cc:gcc tmux:tmux strace:strace git:git unshare:util-linux script:bsdutils node:nodejs npm:npm; do
        command -v "${pair%%:*}" >/dev/null 2>&1 || missing+=("${pair##*:}")
    done
    [ "${#missing[@]}" -eq 0 ] && return
    say "installing ${missing[*]}"
    local root=()
    [ "$(id -u)" -eq 0 ] || root=(sudo)
    "${root[@]}" apt-get update -qq
    DEBIAN_FRONTEND=noninteractive "${root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

# install_npm NAME PACKAGE VERSION PROGRAM: one folder per version; the marker is written last, so a broken install is made again.
install_npm() {
    local folder="$cache/agents/$1-$3"
    [ -e "$folder/.complete" ] && return
    say "installing $2@$3"
    rm -rf "$folder"
    mkdir -p "$folder"
    echo '{"private":true}' >"$folder/package.json"
    (cd "$folder" && npm install --no-audit --no-fund --loglevel=error "$2@$3")
    # Newer npm does not run a package's install script unasked, and this one puts the native program into place.
    if [ -f "$folder/node_modules/$2/install.cjs" ]; then
        (cd "$folder/node_modules/$2" && node install.cjs)
    fi
    "$folder/node_modules/.bin/$4" --version >/dev/null
    touch "$folder/.complete"
}

need_agents() {
    install_npm claude @anthropic-ai/claude-code "$claude_version" claude
    install_npm codex @openai/codex "$codex_version" codex
    install_npm opencode opencode-ai "$opencode_version" opencode
    install_npm gemini @google/gemini-cli "$gemini_version" gemini
    install_npm copilot @github/copilot "$copilot_version" copilot
    install_npm node node "$node_version" node
    PATH="$cache/agents/node-$node_version/node_modules/.bin:$PATH" \
        install_npm pi @earendil-works/pi-coding-agent "$pi_version" pi
}
