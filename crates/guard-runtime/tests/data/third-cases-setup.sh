mkdir -p ~/.ssh ~/.aws ~/.config/gh ~/.config/baton ~/.claude ~/.codex ~/.gemini ~/other/deep ~/b ~/.gradle/init.d ~/.local/bin ~/.cargo
echo k > ~/.ssh/id_ed25519; echo k > ~/.ssh/id_rsa; echo c > ~/.aws/credentials; echo t > ~/.config/gh/hosts.yml
echo x > ~/.bashrc; echo x > ~/.profile; echo f > ~/other/f; echo g > ~/other/deep/g
echo '[guard]' > ~/.config/baton/config.toml; echo x > ~/b/baton.db
echo '{"hooks":{"PreToolUse":[{"hooks":[{"command":"baton hook claude PreToolUse"}]}]}}' > ~/.claude/settings.json
echo '{"x":"baton"}' > ~/.codex/hooks.json
git init -q -b main . && git config user.email a@b && git config user.name n
git init -q --bare ../r.git && git remote add origin ../r.git
mkdir -p src tests docs sub dist build .cargo
echo '[guard]' > .baton.toml; echo A=1 > .env.example; echo r > README.md; echo c > CHANGELOG.md
printf '.env\nnode_modules\ndist\nbuild\ntarget\n' > .gitignore
echo '{"name":"p","scripts":{"build":"tsc -p .","start":"node dist/index.js","test":"vitest run"}}' > package.json
echo p > src/main.py
git add . && git commit -qm init && git push -q -u origin main
git checkout -q -b old && git commit -q --allow-empty -m 'old unpushed'
git checkout -q -b feature/login main && echo l > docs/login.md && git add . && git commit -qm login && git push -q -u origin feature/login
git commit -q --allow-empty -m unpushed
echo changed >> src/main.py; echo new > src/new.py
echo API_KEY=abc > .env; echo a > dist/a.js
cat > evil.sh <<'E'
#!/bin/bash
set -e
f() { rm -rf "$1"; }
f "$HOME/other"
E
chmod +x evil.sh
printf 'D := $(HOME)/other\nwipe: ; rm -rf $(D)\ndep: wipe\n' > evil.mk
printf 'import shutil, os\ndef main():\n    shutil.rmtree(os.path.expanduser("~/other"))\nmain()\n' > evil.py
printf "const fs=require('fs'),os=require('os');\nfs.rmSync(os.homedir()+'/other',{recursive:true});\n" > evil.js
printf "import fs from \"fs\"; import os from \"os\";\nfs.rmSync(os.homedir()+'/other',{recursive:true});\n" | tee evil.ts > evil.mjs
echo 'require "fileutils"; FileUtils.rm_rf(Dir.home+"/other")' > evil.rb
echo '1e sudo id' > evil.sed
echo 'Remove-Item -Recurse -Force ~/other' > evil.ps1
echo 'web: sudo id' > Procfile
printf 'task :wipe do\n  sh "sudo id"\nend\n' > Rakefile
printf "task wipe(type: Exec) { commandLine 'sudo','id' }\ntask wipe2(type: Delete) { delete \"$HOME/other\" }\n" > build.gradle
printf 'build:\n    cargo build\n[script("python3")]\npy:\n    import shutil; shutil.rmtree("%s/other")\n' "$HOME" > justfile
printf '[tasks.wipe]\nrun = "rm -rf ~/other"\n' > mise.toml
printf 'import nox, shutil\n@nox.session\ndef wipe(s):\n    s.run("sudo","id",external=True)\n' > noxfile.py
printf 'from invoke import task\n@task\ndef wipe(c):\n    c.run("sudo id")\n' > tasks.py
printf '[tox]\nenvlist = py\n[testenv]\ncommands = rm -rf %s/other\n' "$HOME" > tox.ini
printf '[target.x86_64-unknown-linux-gnu]\nrunner = "sudo -E"\n' > .cargo/config.toml
printf 'services:\n  a:\n    image: alpine\n    volumes: ["%s:/h"]\n    command: rm -rf /h/other\n' "$HOME" > sub/compose.yml
echo 'sudo id' > sub/steps.txt
printf -- '- hosts: localhost\n  become: true\n  tasks:\n  - shell: rm -rf ~/other\n' > sub/pb.yml
echo 'add_custom_target(wipe COMMAND sudo id)' > sub/CMakeLists.txt
echo '{"name":"s","scripts":{"wipe":"rm -rf ~/other"}}' > sub/package.json
printf '[project]\nname="s"\n[tool.poe.tasks]\nwipe = "sudo id"\n[tool.pdm.scripts]\nwipe = "sudo id"\n[tool.hatch.envs.default.scripts]\nwipe = "sudo id"\n' > sub/pyproject.toml
printf 'rule r\n  command = sudo id\nbuild wipe: r\n' > sub/build.ninja
printf '[scripts]\nwipe = "sudo id"\n' > sub/Pipfile
