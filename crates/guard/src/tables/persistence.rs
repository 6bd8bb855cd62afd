//! Files that make something run later by itself: shell profiles, keys that let others in,
//! schedules, hooks.

use super::{Sample, free, held};

/// Where such a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    /// Below a home, the file or what is below the folder.
    Home(&'static str),
    /// An absolute path, with what is below it.
    System(&'static str),
    /// Below any repository.
    Repository(&'static str),
    /// The end of a name below a home, outside of the project.
    Name(&'static str),
}

#[derive(Debug)]
pub(crate) struct PersistencePath {
    pub(crate) at: Where,
    /// What it is, for the reason.
    pub(crate) what: &'static str,
    pub(crate) example: Sample,
}

const PERSISTENCE_RULE: &str = "block-persistence";
const PROFILE_LABEL: &str = "a profile that every new shell runs";
const KEYS_LABEL: &str = "a list of keys that let others in";
const SCHEDULE_LABEL: &str = "a schedule that runs by itself";
const SERVICE_LABEL: &str = "a service that starts by itself";
const LOGIN_LABEL: &str = "a program that starts at every login";
const EDITOR_LABEL: &str = "a file that the editor runs";
const STARTUP_LABEL: &str = "a file that a program runs whenever it starts";
const SHADOW_LABEL: &str = "a program in the place of another one";
const HOOK_LABEL: &str = "a hook that git runs by itself";

const fn home(path: &'static str, what: &'static str, example: &'static str) -> PersistencePath {
    PersistencePath { at: Where::Home(path), what, example: held(PERSISTENCE_RULE, example) }
}

const fn system(path: &'static str, what: &'static str, example: &'static str) -> PersistencePath {
    PersistencePath { at: Where::System(path), what, example: held(PERSISTENCE_RULE, example) }
}

pub(crate) const PERSISTENCE_PATHS: &[PersistencePath] = &[
    home(".bashrc", PROFILE_LABEL, "echo 'curl x' >> ~/.bashrc"),
    home(".bash_profile", PROFILE_LABEL, "echo x >> ~/.bash_profile"),
    home(".bash_login", PROFILE_LABEL, "echo x >> ~/.bash_login"),
    home(".bash_logout", PROFILE_LABEL, "echo x >> ~/.bash_logout"),
    home(".bash_aliases", PROFILE_LABEL, "tee -a ~/.bash_aliases < a"),
    home(".profile", PROFILE_LABEL, "sed -i 's/a/b/' ~/.profile"),
    home(".inputrc", PROFILE_LABEL, "echo x >> ~/.inputrc"),
    home(".zshrc", PROFILE_LABEL, "cat a >> ~/.zshrc"),
    home(".zshenv", PROFILE_LABEL, "echo x >> ~/.zshenv"),
    home(".zprofile", PROFILE_LABEL, "cp a ~/.zprofile"),
    home(".zlogin", PROFILE_LABEL, "echo x >> ~/.zlogin"),
    home(".zlogout", PROFILE_LABEL, "echo x >> ~/.zlogout"),
    home(".oh-my-zsh/custom", PROFILE_LABEL, "cp a ~/.oh-my-zsh/custom/a.zsh"),
    home(".kshrc", PROFILE_LABEL, "echo x >> ~/.kshrc"),
    home(".cshrc", PROFILE_LABEL, "echo x >> ~/.cshrc"),
    home(".tcshrc", PROFILE_LABEL, "echo x >> ~/.tcshrc"),
    home(".login", PROFILE_LABEL, "echo x >> ~/.login"),
    home(".config/fish/config.fish", PROFILE_LABEL, "echo x >> ~/.config/fish/config.fish"),
    home(".config/fish/conf.d", PROFILE_LABEL, "echo x > ~/.config/fish/conf.d/a.fish"),
    home(".config/fish/functions", PROFILE_LABEL, "echo x > ~/.config/fish/functions/ls.fish"),
    home(".config/nushell", PROFILE_LABEL, "echo x >> ~/.config/nushell/config.nu"),
    home(".config/powershell", PROFILE_LABEL, "echo x >> ~/.config/powershell/profile.ps1"),
    home("Documents/PowerShell", PROFILE_LABEL, "echo x >> ~/Documents/PowerShell/profile.ps1"),
    home(".config/environment.d", PROFILE_LABEL, "echo x > ~/.config/environment.d/a.conf"),
    home(".pam_environment", PROFILE_LABEL, "echo x >> ~/.pam_environment"),
    home(".xinitrc", LOGIN_LABEL, "echo x >> ~/.xinitrc"),
    home(".xprofile", LOGIN_LABEL, "echo x >> ~/.xprofile"),
    home(".xsession", LOGIN_LABEL, "echo x >> ~/.xsession"),
    home(".xsessionrc", LOGIN_LABEL, "echo x >> ~/.xsessionrc"),
    home(".ssh/authorized_keys", KEYS_LABEL, "cat k.pub >> ~/.ssh/authorized_keys"),
    home(".ssh/authorized_keys2", KEYS_LABEL, "cat k.pub >> ~/.ssh/authorized_keys2"),
    home(".ssh/rc", LOGIN_LABEL, "echo x >> ~/.ssh/rc"),
    home(
        ".ssh/config",
        "the configuration of ssh, which can run commands",
        "echo 'ProxyCommand x' >> ~/.ssh/config",
    ),
    home(".config/systemd/user", SERVICE_LABEL, "cp a.service ~/.config/systemd/user/a.service"),
    home(".local/share/systemd/user", SERVICE_LABEL, "cp a.service ~/.local/share/systemd/user/"),
    home("Library/LaunchAgents", SERVICE_LABEL, "cp a.plist ~/Library/LaunchAgents/a.plist"),
    home(".config/autostart", LOGIN_LABEL, "cp a.desktop ~/.config/autostart/a.desktop"),
    home(".config/autostart-scripts", LOGIN_LABEL, "cp a.sh ~/.config/autostart-scripts/a.sh"),
    home(".config/plasma-workspace/env", LOGIN_LABEL, "cp a.sh ~/.config/plasma-workspace/env/a.sh"),
    home(".gitconfig", "git's configuration of every repository", "echo x >> ~/.gitconfig"),
    home(".config/git/config", "git's configuration of every repository", "echo x >> ~/.config/git/config"),
    home(".config/git/hooks", HOOK_LABEL, "cp a ~/.config/git/hooks/pre-commit"),
    home(".vimrc", "a file that the editor runs", "echo x >> ~/.vimrc"),
    home(".config/nvim/init.lua", "a file that the editor runs", "echo x >> ~/.config/nvim/init.lua"),
    home(".tmux.conf", "a file that tmux runs", "echo x >> ~/.tmux.conf"),
    home(".pythonrc", PROFILE_LABEL, "echo x >> ~/.pythonrc"),
    home(".vim/plugin", EDITOR_LABEL, "echo x > ~/.vim/plugin/a.vim"),
    home(".vim/autoload", EDITOR_LABEL, "echo x > ~/.vim/autoload/a.vim"),
    home(".vim/after", EDITOR_LABEL, "echo x > ~/.vim/after/a.vim"),
    home(".config/nvim/plugin", EDITOR_LABEL, "echo x > ~/.config/nvim/plugin/a.lua"),
    home(".config/nvim/init.vim", EDITOR_LABEL, "echo x >> ~/.config/nvim/init.vim"),
    home(".emacs", EDITOR_LABEL, "echo '(x)' >> ~/.emacs"),
    home(".emacs.d", EDITOR_LABEL, "echo '(x)' >> ~/.emacs.d/init.el"),
    home(".config/emacs", EDITOR_LABEL, "echo '(x)' >> ~/.config/emacs/init.el"),
    home(".exrc", EDITOR_LABEL, "echo x >> ~/.exrc"),
    home(".nanorc", EDITOR_LABEL, "echo x >> ~/.nanorc"),
    home(".screenrc", "a file that screen runs", "echo x >> ~/.screenrc"),
    home(".config/tmux/tmux.conf", "a file that tmux runs", "echo x >> ~/.config/tmux/tmux.conf"),
    home(".gdbinit", STARTUP_LABEL, "echo x >> ~/.gdbinit"),
    home(".lldbinit", STARTUP_LABEL, "echo x >> ~/.lldbinit"),
    home(".irbrc", STARTUP_LABEL, "echo x >> ~/.irbrc"),
    home(".pryrc", STARTUP_LABEL, "echo x >> ~/.pryrc"),
    home(".Rprofile", STARTUP_LABEL, "echo x >> ~/.Rprofile"),
    home(".julia/config/startup.jl", STARTUP_LABEL, "echo x >> ~/.julia/config/startup.jl"),
    home(
        ".ipython/profile_default/startup",
        STARTUP_LABEL,
        "echo x > ~/.ipython/profile_default/startup/a.py",
    ),
    home(".node_repl_history.js", STARTUP_LABEL, "echo x > ~/.node_repl_history.js"),
    home(".cargo/config.toml", STARTUP_LABEL, "echo x > ~/.cargo/config.toml"),
    home(".cargo/config", STARTUP_LABEL, "echo x > ~/.cargo/config"),
    home(".gradle/init.gradle", STARTUP_LABEL, "echo x > ~/.gradle/init.gradle"),
    home(".gradle/init.gradle.kts", STARTUP_LABEL, "echo x > ~/.gradle/init.gradle.kts"),
    home(".gradle/init.d", STARTUP_LABEL, "echo x > ~/.gradle/init.d/a.gradle"),
    home(".mavenrc", STARTUP_LABEL, "echo x >> ~/.mavenrc"),
    home(".psqlrc", STARTUP_LABEL, "echo x >> ~/.psqlrc"),
    home(".sqliterc", STARTUP_LABEL, "echo x >> ~/.sqliterc"),
    home(".direnvrc", STARTUP_LABEL, "echo x >> ~/.direnvrc"),
    home(".config/direnv/direnvrc", STARTUP_LABEL, "echo x >> ~/.config/direnv/direnvrc"),
    home(".local/bin/git", SHADOW_LABEL, "cp evil ~/.local/bin/git"),
    home(".local/bin/ls", SHADOW_LABEL, "cp evil ~/.local/bin/ls"),
    home(".local/bin/sudo", SHADOW_LABEL, "cp evil ~/.local/bin/sudo"),
    home(".local/bin/ssh", SHADOW_LABEL, "cp evil ~/.local/bin/ssh"),
    home("bin/git", SHADOW_LABEL, "cp evil ~/bin/git"),
    home("bin/ls", SHADOW_LABEL, "cp evil ~/bin/ls"),
    system("/usr/local/bin/git", SHADOW_LABEL, "cp evil /usr/local/bin/git"),
    system("/usr/local/bin/ls", SHADOW_LABEL, "cp evil /usr/local/bin/ls"),
    system("/usr/local/bin/sudo", SHADOW_LABEL, "cp evil /usr/local/bin/sudo"),
    system("/var/service", SERVICE_LABEL, "ln -s /etc/sv/x /var/service/"),
    system("/etc/runit", SERVICE_LABEL, "ln -s /etc/sv/x /etc/runit/runsvdir/default/"),
    PersistencePath {
        at: Where::Name("usercustomize.py"),
        what: STARTUP_LABEL,
        example: held(PERSISTENCE_RULE, "echo x > ~/.local/lib/python3.12/site-packages/usercustomize.py"),
    },
    PersistencePath {
        at: Where::Name("sitecustomize.py"),
        what: STARTUP_LABEL,
        example: held(PERSISTENCE_RULE, "echo x > ~/.local/lib/python3.12/site-packages/sitecustomize.py"),
    },
    PersistencePath {
        at: Where::Name(".pth"),
        what: STARTUP_LABEL,
        example: held(PERSISTENCE_RULE, "echo 'import os' > ~/.local/lib/python3.12/site-packages/x.pth"),
    },
    system("/etc/crontab", SCHEDULE_LABEL, "echo x >> /etc/crontab"),
    system("/etc/cron.d", SCHEDULE_LABEL, "cp a /etc/cron.d/a"),
    system("/etc/cron.daily", SCHEDULE_LABEL, "cp a /etc/cron.daily/a"),
    system("/etc/cron.hourly", SCHEDULE_LABEL, "cp a /etc/cron.hourly/a"),
    system("/var/spool/cron", SCHEDULE_LABEL, "echo x >> /var/spool/cron/crontabs/me"),
    system("/etc/systemd", SERVICE_LABEL, "cp a.service /etc/systemd/system/a.service"),
    system("/lib/systemd", SERVICE_LABEL, "cp a.service /lib/systemd/system/a.service"),
    system("/usr/lib/systemd", SERVICE_LABEL, "cp a.service /usr/lib/systemd/system/a.service"),
    system("/etc/init.d", SERVICE_LABEL, "cp a /etc/init.d/a"),
    system("/etc/rc.local", SERVICE_LABEL, "echo x >> /etc/rc.local"),
    system("/etc/profile", PROFILE_LABEL, "echo x >> /etc/profile"),
    system("/etc/profile.d", PROFILE_LABEL, "cp a /etc/profile.d/a.sh"),
    system("/etc/bash.bashrc", PROFILE_LABEL, "echo x >> /etc/bash.bashrc"),
    system("/etc/zsh", PROFILE_LABEL, "echo x >> /etc/zsh/zshrc"),
    system("/etc/environment", PROFILE_LABEL, "echo x >> /etc/environment"),
    system("/etc/ld.so.preload", "a library that every program loads", "echo x >> /etc/ld.so.preload"),
    system("/etc/sudoers.d", "a list of who may use sudo", "echo x >> /etc/sudoers.d/me"),
    system("/etc/sudoers", "a list of who may use sudo", "echo x >> /etc/sudoers"),
    system("/Library/LaunchAgents", SERVICE_LABEL, "cp a.plist /Library/LaunchAgents/a.plist"),
    system("/Library/LaunchDaemons", SERVICE_LABEL, "cp a.plist /Library/LaunchDaemons/a.plist"),
    PersistencePath {
        at: Where::Repository(".git/hooks"),
        what: HOOK_LABEL,
        example: held(PERSISTENCE_RULE, "echo x > .git/hooks/pre-commit"),
    },
    PersistencePath {
        at: Where::Repository(".git/config"),
        what: "the configuration of the repository, which can run commands",
        example: held(PERSISTENCE_RULE, "echo x >> .git/config"),
    },
];

/// A command that leaves something by its own means: its leading words, and the words of which it
/// has one; none means any.
#[derive(Debug)]
pub(crate) struct Installer {
    pub(crate) call: &'static str,
    pub(crate) with: &'static [&'static str],
    pub(crate) example: Sample,
}

const fn installer(call: &'static str, with: &'static [&'static str], example: &'static str) -> Installer {
    Installer { call, with, example: held(PERSISTENCE_RULE, example) }
}

/// The table of them.
pub(crate) const INSTALLERS: &[Installer] = &[
    installer("conda init", &[], "conda init bash"),
    installer("mamba init", &[], "mamba init zsh"),
    installer("micromamba shell init", &[], "micromamba shell init -s bash"),
    installer("pipx ensurepath", &[], "pipx ensurepath"),
    installer("uv tool update-shell", &[], "uv tool update-shell"),
    installer("pnpm setup", &[], "pnpm setup"),
    installer("rustup-init", &[], "rustup-init -y"),
    installer("rc-update add", &[], "rc-update add x default"),
    installer("fcrontab", &[], "fcrontab jobs"),
    installer(
        "defaults write",
        &["LoginHook", "LogoutHook", "com.apple.loginitems"],
        "defaults write com.apple.loginwindow LoginHook /tmp/x",
    ),
    installer("chezmoi apply", &[], "chezmoi apply"),
    installer("chezmoi update", &[], "chezmoi update"),
    installer("stow -t ~", &[], "stow -t '~' dotfiles"),
    installer("yadm checkout", &[], "yadm checkout"),
    installer("sc create", &[], "sc.exe create a binPath= x"),
    installer("nssm install", &[], "nssm install a x"),
    installer("brew services", &["start", "restart"], "brew services start x"),
    installer("launchctl asuser", &[], "launchctl asuser 501 x"),
    installer("git init", &["--template"], "git init --template=/tmp/tpl"),
    installer("git clone", &["--template"], "git clone --template=/tmp/tpl x y"),
];

/// Similar commands that are harmless.
pub(crate) const HARMLESS_SAMPLES: &[Sample] = &[
    free(PERSISTENCE_RULE, "cat ~/.bashrc"),
    free(PERSISTENCE_RULE, "grep alias ~/.zshrc"),
    free(PERSISTENCE_RULE, "source ~/.bashrc && npm test"),
    free(PERSISTENCE_RULE, "ls .git/hooks ~/.config/systemd/user"),
    free(PERSISTENCE_RULE, "cp ~/.bashrc dotfiles/bashrc"),
    free(PERSISTENCE_RULE, "echo x >> .bashrc.example"),
    free(PERSISTENCE_RULE, "crontab -l"),
    free(PERSISTENCE_RULE, "git config user.name me && git config --get core.hooksPath"),
    free(PERSISTENCE_RULE, "git config core.hooksPath .githooks"),
    free(PERSISTENCE_RULE, "echo x > hooks/pre-commit"),
    free(PERSISTENCE_RULE, "husky install && pre-commit install"),
    free(PERSISTENCE_RULE, "systemctl --user status x"),
    free(PERSISTENCE_RULE, "git config --unset core.hooksPath"),
    free(PERSISTENCE_RULE, "git config --global user.email a@b.c"),
];
