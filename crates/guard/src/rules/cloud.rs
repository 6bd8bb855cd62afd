//! Tools that change clouds and clusters.

use super::{Example, Finding, Params, Rule, is_allowed, short};
use crate::judge::{Facts, GuardEvent};
use crate::shell::Command;

macro_rules! tool_rule {
    ($id:literal, $about:literal, $check:ident, $bad:expr, $good:expr) => {
        Rule {
            id: $id,
            on: false,
            event: GuardEvent::Before,
            forbids_commands: true,
            parameters: &["allowPatterns"],
            about: $about,
            check: $check,
            bad: $bad,
            good: $good,
        }
    };
}

pub(super) const RULES: &[Rule] = &[
    tool_rule!(
        "block-kubectl",
        "blocks kubectl, except for allowed patterns",
        kubectl,
        &[
            Example::Shell("kubectl get pods"),
            Example::Shell("x=$(kubectl delete ns prod)"),
            Example::Shell("docker run --rm bitnami/kubectl get pods")
        ],
        &[Example::Shell("echo kubectl"), Example::Shell("which kubectl")]
    ),
    tool_rule!(
        "block-terraform",
        "blocks terraform and tofu, except for allowed patterns",
        terraform,
        &[Example::Shell("terraform -chdir=x destroy"), Example::Shell("tofu apply")],
        &[Example::Shell("ls terraform"), Example::Shell("cat terraform.tfvars")]
    ),
    tool_rule!(
        "block-aws-cli",
        "blocks aws, except for allowed patterns",
        aws,
        &[Example::Shell("aws s3 ls"), Example::Shell("python -m awscli s3 ls")],
        &[Example::Shell("echo awscli"), Example::Shell("npm install aws-sdk")]
    ),
    tool_rule!(
        "block-gcloud",
        "blocks gcloud, gsutil and bq, except for allowed patterns",
        gcloud,
        &[Example::Shell("gcloud projects list")],
        &[Example::Shell("man gcloud")]
    ),
    tool_rule!(
        "block-az-cli",
        "blocks az, except for allowed patterns",
        az,
        &[Example::Shell("az group delete -n x")],
        &[Example::Shell("azure-cli list"), Example::Shell("ls az")]
    ),
    tool_rule!(
        "block-helm",
        "blocks helm, except for allowed patterns",
        helm,
        &[Example::Shell("helm install a ./chart")],
        &[Example::Shell("ls charts/helm")]
    ),
];

fn kubectl(facts: &Facts<'_>, params: &Params) -> Option<Finding> {
    used(facts, params, &["kubectl", "kubecolor", "oc"], &["kubectl"], "kubectl")
}

fn terraform(facts: &Facts<'_>, params: &Params) -> Option<Finding> {
    used(
        facts,
        params,
        &["terraform", "tofu", "terragrunt", "opentofu"],
        &["terraform", "opentofu"],
        "terraform",
    )
}

fn aws(facts: &Facts<'_>, params: &Params) -> Option<Finding> {
    used(facts, params, &["aws", "aws2", "awscli"], &["aws-cli"], "aws")
}

fn gcloud(facts: &Facts<'_>, params: &Params) -> Option<Finding> {
    used(facts, params, &["gcloud", "gsutil", "bq"], &["gcloud"], "gcloud")
}

fn az(facts: &Facts<'_>, params: &Params) -> Option<Finding> {
    used(facts, params, &["az"], &["azure-cli"], "az")
}

fn helm(facts: &Facts<'_>, params: &Params) -> Option<Finding> {
    used(facts, params, &["helm", "helm3", "helmfile"], &["helm"], "helm")
}

/// A command of one of these tools, or of an image that only runs one, that no pattern allows.
fn used(facts: &Facts<'_>, params: &Params, names: &[&str], images: &[&str], tool: &str) -> Option<Finding> {
    let commands = facts.analysis.iter().flat_map(|analysis| &analysis.commands);
    let command = commands.into_iter().find(|command| {
        let is_tool = names.contains(&command.name.as_str())
            || runs_module(command, names)
            || runs_image(command, images)
            || is_subcommand(command, names);
        is_tool && !is_allowed(command, &params.allow_patterns)
    })?;
    Finding::deny(format!(
        "Blocked: `{}`: {tool} uses systems outside the project. Ask the person to run it.",
        short(&command.show())
    ))
}

fn runs_module(command: &Command, names: &[&str]) -> bool {
    let args = command.args();
    command.name.starts_with("python")
        && args
            .iter()
            .zip(args.iter().skip(1))
            .any(|(flag, module)| flag.text == "-m" && names.contains(&module.text.as_str()))
}

fn is_subcommand(command: &Command, names: &[&str]) -> bool {
    matches!(command.name.as_str(), "minikube" | "k3s" | "microk8s" | "rdctl")
        && command.args().first().is_some_and(|arg| names.contains(&arg.text.as_str()))
}

fn runs_image(command: &Command, images: &[&str]) -> bool {
    matches!(command.name.as_str(), "docker" | "podman" | "nerdctl")
        && command.has("run")
        && command.texts().any(|arg| {
            let name = arg.rsplit('/').next().unwrap_or(arg);
            let name = name.split([':', '@']).next().unwrap_or(name);
            arg.contains('/') && !arg.starts_with(['/', '.', '-']) && images.contains(&name)
        })
}
