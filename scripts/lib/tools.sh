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
# Versions of OpenCode whose plugins reach another part of the process than the one that asks: an answer is dropped there, or refused.
opencode_old_versions=(1.15.3 1.15.13 1.17.0)
# What the agents run on: Debian's is too old for Gemini CLI (20) and Pi (22).
node_version=22.22.0

# Debian packages that provide commands: command:package …
need_packages() {
    local missing=() pair
    for pair in cc:gcc tmux:tmux strace:strace git:git unshare:util-linux script:bsdutils node:nodejs npm:npm; do
        command -v "${pair%%:*}" >/dev/null 2>&1 || missing+=("${pair##*:}")
    done
    # What a program is linked with; Debian's gcc only recommends it.
    [ -e /usr/include/stdlib.h ] || missing+=(libc6-dev)
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
    (cd "$folder" && npm install --no-audit --no-fund --loglevel=error "$2@$3") || return
    # Newer npm does not run a package's install script unasked, and this one puts the native program into place.
    if [ -f "$folder/node_modules/$2/install.cjs" ]; then
        (cd "$folder/node_modules/$2" && node install.cjs) || return
    fi
    "$folder/node_modules/.bin/$4" --version >/dev/null || return
    touch "$folder/.complete"
}

agent_names=(claude codex opencode gemini copilot pi)

# package_of NAME: what npm calls it.
package_of() {
    case "$1" in
    claude) echo @anthropic-ai/claude-code ;;
    codex) echo @openai/codex ;;
    opencode) echo opencode-ai ;;
    gemini) echo @google/gemini-cli ;;
    copilot) echo @github/copilot ;;
    pi) echo @earendil-works/pi-coding-agent ;;
    *)
        echo "unknown agent $1; there are: ${agent_names[*]}" >&2
        return 64
        ;;
    esac
}

# pinned NAME: the version that its adapter was verified with.
pinned() {
    local version="$1_version"
    echo "${!version}"
}

# need_agent NAME [VERSION]: the pinned version unless told. From then on `node` is the pinned one, for the tests too.
need_agent() {
    local package node="$cache/agents/node-$node_version/node_modules/.bin"
    package="$(package_of "$1")" || return
    install_npm node node "$node_version" node || return
    [[ ":$PATH:" == *":$node:"* ]] || export PATH="$node:$PATH"
    install_npm "$1" "$package" "${2:-$(pinned "$1")}" "$1"
}

need_agents() {
    local name
    for name in "${agent_names[@]}"; do need_agent "$name"; done
}

# need_partners NAME: the agents that it talks to in its stories.
need_partners() {
    case "$1" in
    codex | copilot) need_agent claude ;;
    claude) need_agent codex ;;
    esac
}

# stories NAME: runs the stories of one agent.
stories() {
    # In these modules the names of stories begin with that of their agent.
    local chosen=("guard::$1_" "wake::$1_" "terminal::$1_" "approvals_$1::")
    # These two share theirs; BATON_ONLY leaves out what a story does with the other one.
    case "$1" in
    claude) chosen+=(delivery:: life:: asks:: setup:: cost:: --skip a_subagent_of_codex) ;;
    codex) chosen+=(delivery:: asks:: setup:: life::killed life::both_agents life::a_subagent_of_codex) ;;
    *) chosen+=("$1::") ;;
    esac
    cargo build --quiet -p baton && BATON_ONLY="$1" cargo test -p baton-stories -- "${chosen[@]}"
}
