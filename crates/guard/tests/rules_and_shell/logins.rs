//! The logins of all agents are secrets.

use baton_guard::secrets::is_secret_path;

#[test]
fn the_login_of_every_agent_is_a_secret() {
    for agent in baton_agents::ALL {
        assert!(!agent.facts().logins.is_empty(), "{} has a login somewhere", agent.name());
        for file in agent.facts().logins {
            let path = format!("/home/dev/{file}");
            assert!(is_secret_path(&path, "/home/dev"), "{path} is not in tables/credentials.rs");
        }
    }
}
