//! Secrets without a mark: webhook addresses, values behind a name, passwords in connection
//! strings.

use baton_guard::{RuleSet, redact};

/// Built from parts, so that no scanner takes this file for a leak.
const PART: &str = "Zx81Kq0vT7mNc2Lp9RsWy4Hd";

fn shown(text: &str) -> Option<String> {
    redact::redact(text, &RuleSet::standard()).map(|redacted| redacted.text)
}

#[test]
fn values_without_a_sign_of_their_own_are_taken_out() {
    let long = format!("{PART}{}", &PART[..16]);
    for text in [
        format!("url: https://hooks.slack.com/services/T0{}/B0{}/{PART}", &PART[..8], &PART[8..16]),
        format!("curl -d x https://hooks.slack.com/triggers/T0AB/1234/{PART}"),
        format!("DISCORD=https://discord.com/api/webhooks/123456789012345678/{PART}-{PART}"),
        format!("https://acme.webhook.office.com/webhookb2/{PART}@{PART}/IncomingWebhook/{PART}/x"),
        format!("aws_secret_access_key = {long}"),
        format!("AWS_SECRET_ACCESS_KEY={long}"),
        format!("export AWS_SECRET_ACCESS_KEY=\"{long}\""),
        format!("\"SecretAccessKey\": \"{long}\""),
        format!("aws_secret_access_key: '{long}'"),
        format!("Server=db;Database=app;User Id=sa;Password={PART};Encrypt=true"),
        format!("Data Source=db;Initial Catalog=app;UID=sa;PWD={PART}"),
        format!("\"Default\": \"Host=db;Username=u;Password={PART}\"; x"),
        format!("Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=r;SharedAccessKey={long}="),
        format!("DefaultEndpointsProtocol=https;AccountName=a;AccountKey={long}{long}=="),
    ] {
        let after = shown(&text);
        assert!(after.as_deref().is_some_and(|after| !after.contains(PART)), "{text}: {after:?}");
    }
}

#[test]
fn placeholders_and_prose_stay() {
    for text in [
        "aws_secret_access_key = ${AWS_SECRET}",
        "aws_secret_access_key = <your secret>",
        "AWS_SECRET_ACCESS_KEY is not set",
        "Server=db;Database=app;User Id=sa;Password=${DB_PASSWORD};",
        "Server=db;Database=app;Integrated Security=true;",
        "see https://api.slack.com/messaging/webhooks and https://discord.com/developers/docs/resources/webhook",
        "POST https://hooks.slack.com/services/T000/B000/XXX",
        "password=; host=db",
        "<div class=\"sk-loading-indicator-wrapper-large\">",
    ] {
        assert_eq!(shown(text), None, "{text}");
    }
}
