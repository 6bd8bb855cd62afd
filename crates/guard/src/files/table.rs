//! What commands do with their operands.

use super::Use;

/// Each use, with the names of the commands that have it, between blanks.
pub(super) const USES: &[(Use, &str)] = &[
    (
        Use::Read,
        " cat tac nl head tail less more most bat batcat view vi vim nvim nano emacs pico micro code ed ex \
         wc sort uniq cut paste od xxd hexdump hd strings md5sum sha1sum sha224sum sha256sum sha512sum \
         shasum md5 cksum b2sum diff cmp comm rev fold fmt column base64 base32 basenc gzip gunzip zcat \
         xz xzcat bzcat bzip2 zstd zstdcat iconv expand tsort split csplit pr open xdg-open source . join \
         shuf Get-Content gc type mdcat glow pandoc sdiff vimdiff colordiff delta gcat ghead gtail zless \
         zmore look ptx sum uuencode gpg age lp lpr envsubst-file hexyl dotenv-file xclip pbcopy readelf \
         objdump nm identify exiftool ffprobe ",
    ),
    (Use::List, " ls dir vdir tree du exa eza lsd Get-ChildItem gci gls ncdu dust "),
    (
        Use::Search,
        " grep egrep fgrep rg ag ack zgrep pcregrep ggrep sed gsed awk gawk mawk nawk jq yq ugrep sd sls \
         Select-String findstr ",
    ),
    (Use::Copy, " cp install rsync scp gcp ditto pax ln copy xcopy robocopy Copy-Item "),
    (Use::Move, " mv gmv rename Move-Item "),
    (
        Use::Write,
        " touch mkdir tee truncate mkfifo sponge Set-Content New-Item Add-Content Out-File mknod fallocate \
         md dos2unix unix2dos ",
    ),
    (Use::Change, " chmod chown chgrp chattr setfacl chflags xattr "),
    (
        Use::Delete,
        " rm rmdir unlink shred srm trash trash-put gio-trash Remove-Item ri del erase rd grm wipe rimraf \
         del-cli ",
    ),
    (
        Use::Nothing,
        " echo printf print true false : test [ export declare local readonly typeset unset cd pushd popd \
         pwd which whereis command man help info docker podman nerdctl docker-compose kubectl oc helm gh \
         glab hub aws gcloud az npm npx yarn pnpm bun deno cargo rustup rustc go gofmt make gmake cmake \
         ninja meson bazel pip pip3 uv poetry pipenv conda brew apt apt-get dnf yum pacman apk snap \
         flatpak systemctl service journalctl ps kill pkill killall pgrep top htop free df uname date cal \
         whoami id groups hostname uptime env printenv set sleep wait exit return seq yes expr bc \
         basename dirname realpath readlink tput clear history alias unalias umask ulimit jobs fg bg \
         disown trap eval exec builtin sudo doas su ssh mosh ping dig nslookup host nc ncat telnet \
         traceroute ip ifconfig netstat ss lsof http https xh redis-cli psql mysql mariadb mongosh mongo \
         terraform tofu pulumi ansible mvn gradle gradlew java javac dotnet nuget swift xcodebuild \
         flutter dart mix rebar3 stack cabal ghc bundle gem rake rails composer artisan phpunit php ruby \
         perl python python3 node tsc eslint prettier jest vitest pytest tox nox black ruff mypy flake8 \
         xargs parallel watch time timeout nice nohup stdbuf setsid tmux screen logger wall say \
         notify-send osascript git svn hg find fd gfind fdfind curl wget tar zip unzip dd patch apply_patch applypatch \
         openssl ssh-add ssh-keygen ssh-copy-id ssh-keyscan mktemp stat file bash sh zsh dash ksh fish baton tr type hash read mapfile let shift \
         getopts crontab at chroot mount umount mkfs sqlite3 duckdb vault op pass security secret-tool \
         playwright vite next turbo nx lerna storybook wrangler vercel netlify heroku fly flyctl claude \
         codex gemini opencode copilot iwr irm iex Start-Process ab wrk hey k6 pm2 nodemon concurrently \
         cross-env dotenv dotenvx dotenv-run dotenv-cli env-cmd godotenv direnv fallow busybox ",
    ),
];
