# What the scripts need on the machine, and how they install it. Sourced, not run.

say() { printf '\n== %s\n' "$*"; }

# Outside the checkout, so that a clean clone finds it again.
cache="${BATON_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/baton-test}"

# The agents, their npm packages and their pinned versions.
agent_names=()
declare -A package_by_name version_by_name
while IFS=$'\t' read -r name package version; do
    [[ "$name" == "#"* ]] && continue
    package_by_name[$name]="$package"
    version_by_name[$name]="$version"
    [ "$name" = node ] || agent_names+=("$name")
done <"${BASH_SOURCE[0]%/*}/../../crates/agents/versions.tsv"
unset name package version

# Versions of OpenCode whose plugins don't reach the part of the process that asks: it drops or refuses an answer.
opencode_old_versions=(1.15.3 1.15.13 1.17.0)
# The agents run on this node: Debian's is too old for Gemini CLI (20) and Pi (22).
node_version="${version_by_name[node]}"

# The Debian packages that the scripts need, each as command:package.
need_packages() {
    local missing=() pair
    for pair in cc:gcc tmux:tmux strace:strace git:git unshare:util-linux script:bsdutils node:nodejs npm:npm zsh:zsh fish:fish; do
        command -v "${pair%%:*}" >/dev/null 2>&1 || missing+=("${pair##*:}")
    done
    # A program is linked with it, but Debian's gcc only recommends it.
    [ -e /usr/include/stdlib.h ] || missing+=(libc6-dev)
    [ "${#missing[@]}" -eq 0 ] && return
    say "installing ${missing[*]}"
    local root=()
    [ "$(id -u)" -eq 0 ] || root=(sudo)
    "${root[@]}" apt-get update -qq
    DEBIAN_FRONTEND=noninteractive "${root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

# install_npm NAME PACKAGE VERSION PROGRAM: one folder per version. The marker is written last, so a broken install is repeated.
install_npm() {
    local folder="$cache/agents/$1-$3"
    [ -e "$folder/.complete" ] && return
    say "installing $2@$3"
    rm -rf "$folder"
    mkdir -p "$folder"
    echo '{"private":true}' >"$folder/package.json"
    (cd "$folder" && npm install --no-audit --no-fund --loglevel=error "$2@$3") || return
    # Newer npm does not run install scripts by itself, and this one puts the native program in place.
    if [ -f "$folder/node_modules/$2/install.cjs" ]; then
        (cd "$folder/node_modules/$2" && node install.cjs) || return
    fi
    "$folder/node_modules/.bin/$4" --version >/dev/null || return
    touch "$folder/.complete"
}

# package_of NAME: the npm package of an agent.
package_of() {
    if [[ " ${agent_names[*]} " != *" $1 "* ]]; then
        echo "unknown agent $1; there are: ${agent_names[*]}" >&2
        return 64
    fi
    echo "${package_by_name[$1]}"
}

# pinned NAME: the version that its adapter was verified with.
pinned() {
    echo "${version_by_name[$1]}"
}

# need_agent NAME [VERSION]: installs an agent, by default in the pinned version. From then on `node` is the pinned one, for the tests too.
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
    # In these modules, the names of stories begin with the name of their agent.
    local chosen=("guard::$1_" "wake::$1_" "terminal::$1_" "plugins::$1_" "approvals_$1::")
    # Claude Code and Codex share modules. BATON_ONLY leaves out what a story does with the other agent.
    case "$1" in
    claude) chosen+=(delivery:: life:: asks:: setup:: cost:: --skip a_subagent_of_codex) ;;
    codex) chosen+=(delivery:: asks:: setup:: life::killed life::both_agents life::a_subagent_of_codex) ;;
    *) chosen+=("$1::") ;;
    esac
    cargo build --quiet -p baton && BATON_ONLY="$1" cargo test -p baton-stories -- "${chosen[@]}"
}
