//! The tools that a model sees: lists them, and calls them by name.
//!
//! Each tool has a file with its input, its output, its description, and the few lines between
//! those and `baton-mail`. A model sees only the structured content of an answer.

use crate::server_state::ServerState;
use crate::{binding, wire};
use baton_agents::McpCaller;
use baton_core::frame::{defuse, shown};
use baton_core::mail::Anchor;
use baton_core::rights::{self, Caller, Right, Surface};
use baton_core::time::Span;
use baton_core::{Code, Error};
use baton_mail::caller;
use baton_mail::identity::Identity;
use baton_mail::inbox::Place;
use baton_store::Store;
use rmcp::RoleServer;
use rmcp::handler::server::tool::{schema_for_input, schema_for_output};
use rmcp::model::{JsonObject, ProgressNotificationParam, Tool, ToolAnnotations};
use rmcp::schemars::JsonSchema;
use rmcp::service::RequestContext;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::sync::Arc;

mod approval;
mod ask;
mod claim;
mod job;
mod message;
mod read;
mod reply;
mod send;
mod who;

/// One call of a tool.
pub(crate) struct Call<'a> {
    pub(crate) server: &'a Arc<ServerState>,
    pub(crate) caller: McpCaller,
    pub(crate) context: &'a RequestContext<RoleServer>,
}

impl Call<'_> {
    /// Who calls. A subagent speaks for its parent.
    fn identity(&self, store: &mut Store) -> Result<Identity, Error> {
        binding::identify(self.server, store, &self.caller)
    }

    /// Refuses a tool that this caller has no right to. If the table does not name the tool, it
    /// does not exist.
    fn permit(&self, name: &str) -> Result<(), Error> {
        let Some(right) = rights::of(Surface::Tool, name, None) else { return Ok(()) };
        let caller = self.server.with_store(|store| self.as_caller(store, right))?;
        rights::may(caller, right)
    }

    fn as_caller(&self, store: &mut Store, right: &Right) -> Result<Caller, Error> {
        let subagent = binding::is_subagent(store, &self.caller)?;
        match self.identity(store) {
            Ok(_) if subagent => Ok(Caller::Subagent),
            Ok(me) => Ok(caller::of(&me.kind, &*self.server.options.env)),
            // A call says about itself that it is a subagent's. That counts only if an agent makes
            // it.
            Err(error) if subagent && error.code() == Code::UnboundSession => match self.server.unbound {
                Caller::Agent => Ok(Caller::Subagent),
                _ => Err(error),
            },
            // An agent whose session is not known: the tool itself says what to do about it. A
            // script or a stranger gets only this error.
            Err(error) if error.code() == Code::UnboundSession && right.allows(self.server.unbound) => {
                Ok(self.server.unbound)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether the client no longer waits for the answer. Checked before mail is claimed for it.
    fn is_abandoned(&self) -> bool {
        self.context.ct.is_cancelled() || *self.server.client_gone.borrow() || wire::is_hung_up()
    }

    /// Resolves when the client no longer waits for the answer: it cancelled the call, or is gone.
    async fn abandoned(&self) {
        let mut gone = self.server.client_gone.clone();
        tokio::select! {
            () = self.context.ct.cancelled() => {}
            // An error means that the transport is gone with its client.
            _ = gone.wait_for(|gone| *gone) => {}
        }
    }

    /// Where this call's result will be in the session's transcript.
    fn place(&self, identity: &Identity) -> Option<Place> {
        let anchor = self
            .caller
            .call
            .as_deref()
            .map_or(Anchor::Shell, |call| self.server.options.agent.call_anchor(call));
        identity.session().map(|session| Place { session, anchor })
    }
}

pub(crate) fn list() -> Vec<Tool> {
    vec![
        who::tool(),
        send::tool(),
        read::tool(),
        ask::tool(),
        reply::tool(),
        claim::tool(),
        job::start::tool(),
        job::status::tool(),
        job::wait::tool(),
        job::cancel::tool(),
        approval::list::tool(),
        approval::answer::tool(),
    ]
}

pub(crate) async fn run(call: &Call<'_>, name: &str, arguments: Map<String, Value>) -> Result<Value, Error> {
    call.permit(name)?;
    match name {
        who::NAME => output(who::run(call, &input(arguments)?)?),
        send::NAME => output(send::run(call, input(arguments)?).await?),
        read::NAME => output(read::run(call, &input(arguments)?).await?),
        ask::NAME => output(ask::run(call, input(arguments)?).await?),
        reply::NAME => output(reply::run(call, input(arguments)?).await?),
        claim::NAME => output(claim::run(call, &input(arguments)?)?),
        job::start::NAME => output(job::start::run(call, input(arguments)?).await?),
        job::status::NAME => output(job::status::run(call, input(arguments)?).await?),
        job::wait::NAME => output(job::wait::run(call, input(arguments)?).await?),
        job::cancel::NAME => output(job::cancel::run(call, input(arguments)?).await?),
        approval::list::NAME => output(approval::list::run(call, input(arguments)?).await?),
        approval::answer::NAME => output(approval::answer::run(call, input(arguments)?).await?),
        other => {
            let names: Vec<_> = list().into_iter().map(|tool| tool.name).collect();
            Err(Error::new(Code::Usage, format!("no tool {}", shown(other, 60)))
                .hint(format!("the tools are {}", names.join(", "))))
        }
    }
}

fn input<T: DeserializeOwned>(arguments: Map<String, Value>) -> Result<T, Error> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        Error::new(Code::Usage, format!("wrong arguments: {}", shown(&error.to_string(), 200)))
            .hint("see the tool's input schema")
    })
}

fn output(answer: impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(answer)
        .map_err(|error| Error::new(Code::Internal, format!("an answer that can't be written: {error}")))
}

/// What a call of a tool changes. Some clients decide by it whether to ask their user.
enum Effect {
    /// Nothing.
    Reads,
    /// Each call adds something.
    Adds,
    /// The call sets something. A second call changes nothing.
    Sets,
    /// Another agent starts to work, which may change things and reach the outside.
    Delegates,
    /// The call ends something that runs.
    Ends,
}

fn tool<I, O>(name: &'static str, title: &'static str, effect: Effect, description: &'static str) -> Tool
where
    I: JsonSchema + 'static,
    O: JsonSchema + 'static,
{
    let annotations = ToolAnnotations::with_title(title)
        .read_only(matches!(effect, Effect::Reads))
        .destructive(matches!(effect, Effect::Delegates | Effect::Ends))
        .idempotent(matches!(effect, Effect::Reads | Effect::Sets))
        .open_world(matches!(effect, Effect::Delegates));
    // This can fail only for an input type that is not a struct, and a test lists all tools.
    let taken = Arc::new(without_formats(schema_for_input::<I>().unwrap_or_default().as_ref().clone()));
    Tool::new(name, description, taken)
        .with_title(title)
        .with_raw_output_schema(answer_or_error::<O>())
        .with_annotations(annotations)
}

/// A schema without the Rust names of number formats. No client knows them, and OpenCode prints a
/// warning about them in its terminal.
fn without_formats(schema: Map<String, Value>) -> Map<String, Value> {
    let fields = schema.into_iter().filter(|(name, value)| name != "format" || !value.is_string());
    fields.map(|(name, value)| (name, value_without_formats(value))).collect()
}

fn value_without_formats(value: Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(without_formats(fields)),
        Value::Array(items) => Value::Array(items.into_iter().map(value_without_formats).collect()),
        other => other,
    }
}

/// The schema of an answer or of an error: clients check errors against it too.
fn answer_or_error<O: JsonSchema + 'static>() -> Arc<JsonObject> {
    let mut schema = without_formats(schema_for_output::<O>().as_ref().clone());
    let required = schema.remove("required").unwrap_or_else(|| json!([]));
    let text = json!({"type": ["string", "null"]});
    let error = json!({"type": "object", "properties": {"code": text, "message": text, "hint": text}});
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("error".to_owned(), error);
    }
    schema.insert("anyOf".to_owned(), json!([{"required": required}, {"required": ["error"]}]));
    Arc::new(schema)
}

/// Reports progress to the client, if it asked for that. Does not wait for it: a client that does
/// not read must not block the call.
fn report_progress(call: &Call<'_>, seconds: f64, timeout: Span, message: &str) {
    let Some(token) = call.context.meta.get_progress_token() else { return };
    #[expect(clippy::cast_precision_loss, reason = "a few minutes in milliseconds")]
    let total = timeout.0 as f64 / 1000.0;
    let progress = ProgressNotificationParam::new(token, seconds).with_total(total).with_message(message);
    let peer = call.context.peer.clone();
    tokio::spawn(async move {
        // The client may be gone.
        peer.notify_progress(progress).await.ok();
    });
}

/// Defuses every text, so that none can look like baton's own.
fn defuse_texts(document: &mut Value) {
    match document {
        Value::String(text) => *text = defuse(text),
        Value::Array(values) => values.iter_mut().for_each(defuse_texts),
        Value::Object(fields) => fields.values_mut().for_each(defuse_texts),
        _ => {}
    }
}

/// An argument that has a value: models often pass an empty text for what they leave out.
fn non_empty(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hook;

    #[test]
    fn the_table_of_rights_names_every_tool_and_no_other() {
        let mut known: Vec<String> = list().into_iter().map(|tool| tool.name.into_owned()).collect();
        known.push(hook::NAME.to_owned());
        for name in &known {
            assert!(rights::of(Surface::Tool, name, None).is_some(), "{name} has no right");
        }
        for right in rights::TABLE.iter().filter(|right| right.surface == Surface::Tool) {
            assert!(known.iter().any(|name| name == right.action), "there is no tool {}", right.action);
        }
    }
}
