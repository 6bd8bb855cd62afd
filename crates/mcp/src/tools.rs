//! The tools that a model sees: their list, and calling them by name.
//!
//! Each has a file: what it takes, what it gives, what it says about itself, and the few lines between that and `baton-mail`.
//! An answer's structured content is all that a model gets to see of it.

use crate::desk::Desk;
use crate::{binding, wire};
use baton_agents::McpCaller;
use baton_core::frame::{defuse, shown};
use baton_core::mail::Anchor;
use baton_core::time::Span;
use baton_core::{Code, Error};
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
    pub(crate) desk: &'a Arc<Desk>,
    pub(crate) caller: McpCaller,
    pub(crate) context: &'a RequestContext<RoleServer>,
}

impl Call<'_> {
    /// Who calls; a subagent speaks for its parent.
    fn identity(&self, store: &mut Store) -> Result<Identity, Error> {
        binding::identify(self.desk, store, &self.caller)
    }

    /// Who calls, where a subagent may not.
    fn own_identity(&self, store: &mut Store) -> Result<Identity, Error> {
        self.refuse_subagent(store)?;
        self.identity(store)
    }

    fn refuse_subagent(&self, store: &Store) -> Result<(), Error> {
        if binding::is_subagent(store, &self.caller)? {
            return Err(Error::new(Code::Subagent, "you are a subagent; the mail is your parent's")
                .hint("finish, and let your parent do it; you may call who and send_message"));
        }
        Ok(())
    }

    /// Whether nobody waits for the answer any more. Asked before something is claimed for a caller who may be gone.
    fn is_abandoned(&self) -> bool {
        self.context.ct.is_cancelled() || *self.desk.client_gone.borrow() || wire::hung_up()
    }

    /// Resolves when nobody waits for the answer any more: the client cancelled the call, or is gone.
    async fn abandoned(&self) {
        let mut gone = self.desk.client_gone.clone();
        tokio::select! {
            () = self.context.ct.cancelled() => {}
            // An error means that the transport is gone with its client.
            _ = gone.wait_for(|gone| *gone) => {}
        }
    }

    /// Where this call's result will stand in the session's transcript.
    fn place(&self, identity: &Identity) -> Option<Place> {
        let anchor = self
            .caller
            .call
            .as_deref()
            .map_or(Anchor::Shell, |call| self.desk.options.agent.call_anchor(call));
        identity.session().map(|session| Place { session, anchor })
    }
}

/// All tools, as the client is told.
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

/// Calls a tool.
pub(crate) async fn run(call: &Call<'_>, name: &str, arguments: Map<String, Value>) -> Result<Value, Error> {
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

/// What calling a tool does to the world, for clients that ask their user by it.
enum Effect {
    /// Nothing.
    Reads,
    /// Something is added each time.
    Adds,
    /// Something is set; a second time changes nothing.
    Sets,
    /// Somebody is set to work, who may change things and reach others.
    Delegates,
    /// Something that goes on is ended.
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
    // Only a type of ours that is no struct could fail here, and a test lists all tools.
    let taken = Arc::new(plain(schema_for_input::<I>().unwrap_or_default().as_ref().clone()));
    Tool::new(name, description, taken)
        .with_title(title)
        .with_raw_output_schema(answer_or_error::<O>())
        .with_annotations(annotations)
}

/// A schema without what Rust calls its numbers: no client knows those formats, and OpenCode writes so across its terminal.
fn plain(schema: Map<String, Value>) -> Map<String, Value> {
    let fields = schema.into_iter().filter(|(name, value)| name != "format" || !value.is_string());
    fields.map(|(name, value)| (name, plain_value(value))).collect()
}

fn plain_value(value: Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(plain(fields)),
        Value::Array(items) => Value::Array(items.into_iter().map(plain_value).collect()),
        other => other,
    }
}

/// The schema of an answer, or of the error in its place: clients check errors against it too.
fn answer_or_error<O: JsonSchema + 'static>() -> Arc<JsonObject> {
    let mut schema = plain(schema_for_output::<O>().as_ref().clone());
    let required = schema.remove("required").unwrap_or_else(|| json!([]));
    let text = json!({"type": ["string", "null"]});
    let error = json!({"type": "object", "properties": {"code": text, "message": text, "hint": text}});
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("error".to_owned(), error);
    }
    schema.insert("anyOf".to_owned(), json!([{"required": required}, {"required": ["error"]}]));
    Arc::new(schema)
}

/// Tells the client that the call is alive, if it wants to know. Not awaited: a client that does not read must not stop the wait.
fn report(call: &Call<'_>, seconds: f64, longest: Span, words: &str) {
    let Some(token) = call.context.meta.get_progress_token() else { return };
    #[expect(clippy::cast_precision_loss, reason = "a few minutes in milliseconds")]
    let total = longest.0 as f64 / 1000.0;
    let progress = ProgressNotificationParam::new(token, seconds).with_total(total).with_message(words);
    let peer = call.context.peer.clone();
    tokio::spawn(async move {
        // Whoever is gone needs no progress.
        peer.notify_progress(progress).await.ok();
    });
}

/// Takes out of every text what could pose as ours.
fn harmless(document: &mut Value) {
    match document {
        Value::String(text) => *text = defuse(text),
        Value::Array(values) => values.iter_mut().for_each(harmless),
        Value::Object(fields) => fields.values_mut().for_each(harmless),
        _ => {}
    }
}

/// An argument that is there: models like to fill in empty text for what they leave out.
fn given(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}
