// Written by `baton setup opencode`; `baton setup --remove opencode` removes it. Changes are overwritten.
//
// It forwards what happens in OpenCode to one `baton link` per process, and does what the link answers. The rules are all in baton. What is decided here is only
// whether an answer reached OpenCode. Whatever goes wrong here, OpenCode goes on as if there were no plugin, with one exception: if the user has set that a tool call
// must not run unjudged, a call that could not be judged does not run.
import { spawn } from "node:child_process"

const BATON = __BATON__
const HOME = __HOME__
const GUARD = __GUARD__
const MARK = /\[baton-offer [0-9a-z]+\]/g
const PATIENCE = 2000 // ms that an event waits for its answer
const JUDGING = 3000 // ms that a tool call waits to be judged: mail may be in front of it, waiting for its store
const UNJUDGED = "baton's guard gave no answer, so this call did not run. Tell your person; `baton doctor` shows why."
const UNSEEN = "baton's guard gave no answer, so this output is not shown. Tell your person; `baton doctor` shows why."
const STARTS = 5 // of the link, within a minute
// A link that has ended is started again after this time in ms, then after twice as long, and so on.
const FIRST_PAUSE = 1000
const LONGEST_PAUSE = 300000
const WELL = 60000 // ms that a link lives which was well
const CALL = 2000 // ms that one call of OpenCode's server takes at most
const SHOWING = 1500 // ms until an answer that was taken shows
const MOVING = 6000 // ms until a call that was held and answered is seen to move on
const RECENT = 20 // messages among which a call that waits is found
const GLANCE = 10000 // ms that a line about mail is shown
const LATE = "nobody answered in time: it was refused"
const LONGEST = 256 * 1024 // characters of one text in a question: more is not kept
// The address that OpenCode gives if it has no server. Any program may listen there.
const NOWHERE = "http://localhost:4096/"

class Link {
  #child
  #calls = new Map()
  #next = 1
  #starts = []
  #rest = ""
  #pause = FIRST_PAUSE
  #revival
  // What is known about each session: the client that reaches it, its folder, its parent.
  sessions = new Map()
  // Marks that have been in a request.
  shown = new Set()
  // What a session is told with its next prompt or tool.
  reminders = new Map()
  // The last push into each session.
  #pushes = new Map()
  // What OpenCode waits for, by its own id.
  #questions = new Map()
  // The commands that are about to run, by their calls: some versions ask without the full command.
  commands = new Map()

  // Sends an event and waits a short time for the answer. undefined means no answer; null is an empty answer.
  call(payload, patience = PATIENCE) {
    return new Promise((resolve) => {
      const id = this.#next++
      const timer = setTimeout(() => this.#answer(id, undefined), patience)
      timer.unref?.()
      this.#calls.set(id, { resolve, timer })
      if (!this.#write({ id, payload })) this.#answer(id, undefined)
    })
  }

  // Sends an event without waiting for the answer.
  tell(payload) {
    this.#write({ id: 0, payload })
  }

  #answer(id, answer) {
    const call = this.#calls.get(id)
    if (!call) return
    this.#calls.delete(id)
    clearTimeout(call.timer)
    call.resolve(answer)
  }

  #write(line) {
    try {
      this.#child ??= this.#start()
      return this.#child ? (this.#child.stdin.write(JSON.stringify(line) + "\n"), true) : false
    } catch {
      return false
    }
  }

  #start() {
    const now = Date.now()
    this.#starts = this.#starts.filter((at) => now - at < 60000)
    if (this.#starts.length >= STARTS) return undefined
    this.#starts.push(now)
    this.#rest = ""
    const child = spawn(BATON, ["link", "opencode", "--home", HOME], { stdio: ["pipe", "pipe", "ignore"] })
    const gone = () => {
      if (this.#child !== child) return
      this.#child = undefined
      if (Date.now() - now >= WELL) this.#pause = FIRST_PAUSE
      this.#reviveLater()
      for (const id of [...this.#calls.keys()]) this.#answer(id, undefined)
      // The next link must learn what is still waiting.
      for (const question of this.#questions.values()) question.told.then((event) => this.#retell(question, event))
    }
    child.on("error", gone)
    child.on("exit", gone)
    child.stdin.on("error", gone)
    child.stdout.setEncoding("utf8")
    child.stdout.on("data", (text) => this.#read(text))
    // Neither the child nor its pipes keep OpenCode running.
    child.unref?.()
    child.stdin.unref?.()
    child.stdout.unref?.()
    return child
  }

  // Starts another link after a pause, even if no session does anything: idle sessions get mail too.
  #reviveLater() {
    if (this.#revival) return
    this.#revival = setTimeout(() => {
      this.#revival = undefined
      try {
        this.#child ??= this.#start()
      } catch {}
      if (this.#child) this.#announce()
      else this.#reviveLater()
    }, this.#pause)
    this.#revival.unref?.()
    this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE)
  }

  // Reports the idle sessions to a new link. The others report themselves.
  #announce() {
    for (const [session_id, { client, directory, parent }] of this.sessions) {
      if (parent) continue
      const tell = ({ data }) => {
        if (data && !data[session_id]) this.tell({ hook_event_name: "session.idle", session_id, cwd: directory })
      }
      client.session.status({}).then(tell).catch(() => {})
    }
  }

  // Reports a question again, unless there was nothing to report.
  #retell(question, event) {
    if (event) this.tell(event)
    // A call that was released waits for no answer, but the result of its answer is still open.
    if (event && question.answering) this.tell({ ...event, hook_event_name: "call.decided" })
  }

  #read(text) {
    const lines = (this.#rest + text).split("\n")
    this.#rest = lines.pop()
    for (const line of lines) {
      try {
        const { id, answer, push, reply } = JSON.parse(line)
        if (push) this.#push(push).catch(() => {})
        else if (reply) this.#reply(reply)
        else this.#answer(id, answer)
      } catch {}
    }
  }

  // Puts mail into an idle session. Because of the ids it is the same message, however often it is sent.
  async #push(push) {
    const before = this.#pushes.get(push.session_id)
    const isShown = before?.mark === push.mark && before.isShown
    const pushed = { ...push, isShown, sent: this.#prompt(push) }
    this.#pushes.set(push.session_id, pushed)
    try {
      await pushed.sent
      if (!isShown) glance(this.sessions.get(push.session_id)?.client, push.glance)
      pushed.isShown = true
    } catch {
      await this.look(pushed)
    }
  }

  async #prompt({ session_id, message_id, part_id, text }) {
    const { client } = this.sessions.get(session_id) ?? {}
    const voice = await lastVoice(client, session_id)
    const parts = [{ id: part_id, type: "text", text }]
    await client.session.promptAsync({
      path: { id: session_id },
      body: { messageID: message_id, parts, ...voice },
      throwOnError: true,
    })
  }

  // Continues a turn that has ended.
  goOn(session_id, text) {
    return this.#prompt({ session_id, message_id: ascending("msg"), part_id: ascending("prt"), text })
  }

  lastPush(session_id) {
    return this.#pushes.get(session_id)
  }

  // After an error in an idle session: reports a push that did not come into the conversation. Without an error this can't be known yet, and the same push
  // simply comes again.
  async look(pushed) {
    const { session_id, message_id, mark } = pushed
    if (this.#pushes.get(session_id) !== pushed || this.shown.has(mark)) return
    const { client, directory } = this.sessions.get(session_id) ?? {}
    if (!(await isMissing(client, session_id, message_id))) return
    this.#pushes.delete(session_id)
    this.tell({ hook_event_name: "push.failed", session_id, cwd: directory, shown: { marks: [mark] } })
  }

  // OpenCode waits for its user. `tell` reports that to the link, and returns what it reported. Returns the question under which it is known.
  asked(question, tell) {
    const known = this.#questions.get(question.id)
    if (known && !known.over) return known
    this.#questions.set(question.id, question)
    question.told = tell().catch(() => {})
    return question
  }

  // OpenCode no longer waits for that. `how` is the answer that it got; nothing, if the turn has ended.
  async settled(id, how, tell) {
    const question = this.#questions.get(id)
    if (!question?.answering) this.#questions.delete(id)
    question?.settle({ how })
    // The link must hear of a question before it hears of its end.
    await question?.told
    return tell()
  }

  // The call, if it is held or was just released.
  held(session, callID) {
    return this.#questions.size ? this.#questions.get(HeldCall.id(session, callID)) : undefined
  }

  // The ids of what a session waits for.
  waitingIn(session) {
    const waits = (question) => question.session === session && !question.over
    return [...this.#questions.values()].filter(waits).map(({ id }) => id)
  }

  // Hands an answer over and reports the result.
  async #reply(reply) {
    const { request, session_id } = reply
    const question = this.#questions.get(request)
    const outcome = question ? await question.answer(reply) : gone("it is not waited for any more")
    const isOver = outcome === effective || outcome.outcome === "gone"
    if (isOver && this.#questions.get(request) === question) this.#questions.delete(request)
    const cwd = this.sessions.get(session_id)?.directory
    this.tell({ hook_event_name: "approval.outcome", session_id, cwd, request, ...outcome })
  }
}

// The results of an answer.
const effective = { outcome: "effective" }
const gone = (detail) => ({ outcome: "gone", detail })
const refused = (detail) => ({ outcome: "refused", detail })
const unsure = (detail) => ({ outcome: "unsure", detail })

// A permission or a question that OpenCode waits for.
class Question {
  #ways
  #posted = false
  #settled
  // How it ended, if it has: an object with `how`.
  over

  constructor(kind, { id, sessionID, tool }, ways) {
    Object.assign(this, { kind, id, session: sessionID, tool })
    this.#ways = ways
    this.#settled = new Promise((resolve) => (this.settle = (over) => resolve((this.over ??= over))))
  }

  // Gives OpenCode an answer, by the route on which the question itself is found. In some versions a plugin's client reaches another part of the process than the
  // one that waits, and gets "true" there. An answer that may have arrived is never given again.
  async answer(reply) {
    let why = "the server that waits for it can't be reached"
    if (this.#posted) return unsure("it was given an answer already")
    try {
      for (const way of this.#ways()) {
        if (!(await this.#isListed(way).catch(() => false))) continue
        const outcome = await this.#answerBy(way, reply)
        if (outcome) return outcome
        why = "it was told, and still waits"
      }
    } catch (error) {
      why = String(error)
    }
    if (this.over) return this.#outcome(reply)
    return this.#posted ? unsure(why) : refused(why)
  }

  async #answerBy(way, reply) {
    // A question of an aborted turn stays in the list.
    if (!(await this.#isWaiting(way))) return gone("its turn has ended")
    if (this.over) return this.#outcome(reply)
    this.#posted = true
    const { status } = await way.post(...this.#words(reply))
    if (status === 400) {
      this.#posted = false
      return refused("OpenCode does not take such an answer")
    }
    await Promise.race([this.#settled, pause(SHOWING)])
    const call = await this.#call(way)
    if (isAborted(call)) return gone("its turn was aborted")
    if (this.over) return this.#outcome(reply)
    if (await this.#isListed(way)) return undefined
    return call && !isRunning(call) ? effective : unsure("it does not wait any more, and nothing shows why")
  }

  // What the end of the question says about our answer.
  #outcome({ answer, answers }) {
    const { how } = this.over
    if (!how) return gone("its turn has ended")
    const ours = how.reply ? how.reply === answer : how.answers ? same(how.answers, answers) : answer === "reject" && !answers
    return this.#posted && ours ? effective : gone(`OpenCode was answered by somebody else: ${JSON.stringify(how)}`)
  }

  async #isListed(way) {
    const { data } = await way.get(`/${this.kind}`)
    return Array.isArray(data) && data.some(({ id }) => id === this.id)
  }

  // Whether the turn still waits: OpenCode shows its call as running, and the session is busy.
  async #isWaiting(way) {
    const call = await this.#call(way)
    if (call) return isRunning(call)
    const { data } = await way.get("/session/status")
    return Boolean(data?.[this.session])
  }

  // The state of the waiting call.
  async #call(way) {
    if (!this.tool?.callID) return undefined
    const { data } = await way.get(`/session/${this.session}/message/${this.tool.messageID}`)
    return data?.parts?.find(({ callID }) => callID === this.tool.callID)?.state
  }

  #words({ answer, message, answers }) {
    const to = `/${this.kind}/${this.id}`
    if (this.kind === "permission") return [`${to}/reply`, { reply: answer, ...(message && { message }) }]
    return answers ? [`${to}/reply`, { answers }] : [`${to}/reject`, {}]
  }
}

// A call that waits in the hook before it, because the guard wants a person to decide.
class HeldCall {
  #refusal
  #stateNow
  #decide
  #isAnswered = false
  // While the result of its answer is unknown.
  answering
  // What OpenCode has shown of the call since, and who waits for that.
  #shown
  #wake = () => {}
  // Whether OpenCode was seen to go on with the call, and who waits for that.
  #goesOn = false
  #onward
  #isGoingOn = new Promise((resolve) => (this.#onward = resolve))
  // The call waits for no answer any more; `turnIsOver` if the turn does not either.
  over = false
  turnIsOver = false
  // Resolves when the hook may go on: with the reason for a refusal, or with nothing.
  decision = new Promise((resolve) => (this.#decide = resolve))

  static id(session, callID) {
    return `held-${session}-${callID}`
  }

  // `refusal` is what the model reads if no one decides; `stateNow` asks OpenCode for the state of the call.
  constructor(session, callID, refusal, stateNow) {
    Object.assign(this, { id: HeldCall.id(session, callID), session })
    this.#refusal = refusal
    this.#stateNow = stateNow
  }

  // OpenCode shows a state of the call.
  shows(state) {
    this.#shown = state
    this.#wake()
  }

  // OpenCode certainly goes on with the call.
  goesOn() {
    this.#goesOn = true
    this.#onward()
    this.#wake()
  }

  settle({ how }) {
    this.over = true
    this.turnIsOver = !how
    this.#decide(this.#refusal)
    this.#wake()
  }

  // Lets the hook go on, and reports the result by what OpenCode then shows of the call.
  async answer({ answer, message }) {
    if (this.over) return gone("its turn has ended")
    if (this.#isAnswered) return unsure("it was given an answer already")
    this.#isAnswered = true
    this.#shown = undefined
    // Only this word is a yes.
    const no = answer === "once" ? undefined : message || this.#refusal
    this.#decide(no)
    this.answering = this.#outcome(no)
    return this.answering.finally(() => (this.answering = undefined))
  }

  async #outcome(no) {
    const outcome = await this.#seen(no)
    if (no || outcome.outcome !== "gone") return outcome
    // If a turn ends at the very moment of a yes, its tool may still run, and that still shows.
    await Promise.race([this.#isGoingOn, pause(SHOWING)])
    return this.#goesOn ? effective : outcome
  }

  // The visible result of an answer.
  async #seen(no) {
    for (const until = Date.now() + MOVING; Date.now() < until; ) {
      const woken = new Promise((resolve) => (this.#wake = resolve))
      if (!this.#shown && !this.#goesOn && !this.over) await Promise.race([woken, pause(SHOWING)])
      const shown = this.#shown
      this.#shown = undefined
      const outcome = this.#said(shown, no) ?? this.#said(await this.#stateNow().catch(() => {}), no)
      if (outcome) return outcome
      if (this.over) return gone("its turn has ended")
    }
    return unsure("it was told, and nothing shows what came of it")
  }

  // What a state says about our answer. A call that runs was not refused and went on, unless its turn has ended.
  #said(state, no) {
    if (this.#goesOn && !no) return effective
    if (!state) return undefined
    if (no && state.status === "error" && state.error?.replace(/^Error: /, "") === no) return effective
    if (isAborted(state)) return gone("its turn was aborted")
    return no || (this.over && isRunning(state)) ? undefined : effective
  }
}

const isRunning = ({ status }) => status === "running" || status === "pending"
const isAborted = (call) => call?.status === "error" && /\babort/i.test(call.error)
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other)
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms).unref?.())

// OpenCode's server through a plugin's client, which needs no listener.
function byClient(client) {
  const call = async (method, url, body) => {
    const options = body && { body, headers: { "content-type": "application/json" } }
    const { data, response } = await client._client[method]({ url, ...options, signal: AbortSignal.timeout(CALL) })
    return { status: response?.status, data }
  }
  return { get: (url) => call("get", url), post: (url, body) => call("post", url, body) }
}

// The same through its own address.
function byAddress(server, directory) {
  const { OPENCODE_SERVER_USERNAME: user = "opencode", OPENCODE_SERVER_PASSWORD: password } = process.env
  const headers = { "content-type": "application/json", "x-opencode-directory": encodeURIComponent(directory) }
  // A server with an unspecified address does not get the password.
  if (password && server.href !== NOWHERE) {
    headers.authorization = `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`
  }
  const call = async (method, url, body) => {
    const signal = AbortSignal.timeout(CALL)
    const answer = await fetch(new URL(url, server), { method, headers, body: body && JSON.stringify(body), redirect: "error", signal })
    const text = await answer.text()
    // A page for people is not an answer.
    return { status: answer.status, data: answer.headers.get("content-type")?.includes("json") ? JSON.parse(text) : undefined }
  }
  return { get: (url) => call("GET", url), post: (url, body) => call("POST", url, body) }
}

// The question, and how many characters of its longest texts are left out. If any are, it can only be approved in OpenCode itself.
function shortened(asked) {
  let left_out = 0
  const cut = (_, value) => {
    if (typeof value !== "string" || value.length <= LONGEST) return value
    left_out += value.length - LONGEST
    // Half a character would make all of it unreadable.
    return value.slice(0, LONGEST).replace(/[\ud800-\udbff]$/, "")
  }
  const told = JSON.parse(JSON.stringify(asked, cut))
  return left_out ? { ...told, left_out } : told
}

// Shows the user who wrote what. Without a screen, nothing happens.
function glance(client, message) {
  if (!message) return
  try {
    client.tui.showToast({ body: { title: "Mail", message, variant: "info", duration: GLANCE } })?.catch?.(() => {})
  } catch {}
}

// Agent and model of the session's last prompt: a push must not switch them.
async function lastVoice(client, id) {
  const { data } = await client.session.messages({ path: { id }, throwOnError: true })
  const info = data.findLast((message) => message.info.role === "user")?.info
  if (!info) return {}
  const { agent, model, variant } = info
  return {
    ...(agent && { agent }),
    ...(model && { model: { providerID: model.providerID, modelID: model.modelID } }),
    ...((variant ?? model?.variant) && { variant: variant ?? model.variant }),
  }
}

// Whether the server says that there is no such message. Any other answer does not count.
async function isMissing(client, id, messageID) {
  const { response } = await client.session.message({ path: { id, messageID } })
  return response?.status === 404
}

// One link per process, even if the plugin is loaded several times.
const link = (globalThis[Symbol.for("baton.link")] ??= new Link())

let counter = 0
// An id that sorts after those that OpenCode has made before.
function ascending(prefix) {
  const time = BigInt(Date.now()) * 4096n + BigInt(++counter % 4096)
  const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
  const random = Array.from({ length: 14 }, () => letters[Math.floor(Math.random() * 62)]).join("")
  return `${prefix}_${(time & 0xffffffffffffn).toString(16).padStart(12, "0")}${random}`
}

function textsOf(part) {
  if (part.type === "text" && !part.ignored) return [part.text]
  if (part.type === "tool" && part.state?.status === "completed") return [part.state.output]
  return []
}

// What the model said itself is not proof.
function marksIn(info, parts) {
  const texts = parts.filter((part) => info.role !== "assistant" || part.type !== "text").flatMap(textsOf)
  return texts.flatMap((text) => text?.match(MARK) ?? [])
}

function allMarks(messages) {
  return messages.flatMap(({ info, parts }) => marksIn(info, parts))
}

// A summary replaces what comes before the message that asks for it. What was said since stays, though it may have been summarized too: a failed summary is
// tried again.
async function marksBehindSummary(client, id) {
  const { data } = await client.session.messages({ path: { id }, throwOnError: true })
  const asked = data.findLastIndex(({ parts }) => parts.some((part) => part.type === "compaction"))
  return allMarks(data.slice(asked + 1))
}

export const Baton = async (context) => {
  const { client, directory } = context
  // Sessions whose next request asks for a summary.
  const compacting = new Set()
  // Sessions whose turn ended with an error, or because the user ended it.
  const failed = new Set()
  // The marks in what is being summarized.
  const summarized = new Map()

  // The session as the link knows it; undefined if there is nothing to report about it.
  const payload = async (hook_event_name, session_id, more = {}) => {
    if (!session_id) return undefined
    let known = link.sessions.get(session_id)
    if (!known) {
      try {
        const { data } = await client.session.get({ path: { id: session_id }, throwOnError: true })
        known = { client, directory: data.directory ?? directory, parent: data.parentID }
        link.sessions.set(session_id, known)
      } catch {
        return undefined
      }
    }
    const { parent, directory: cwd } = known
    return { hook_event_name, session_id: parent ?? session_id, cwd, ...(parent && { agent_id: session_id }), ...more }
  }
  const tell = async (name, session, more) => {
    const event = await payload(name, session, more)
    if (event) link.tell(event)
    return event
  }
  const call = async (name, session, more) => {
    const event = await payload(name, session, more)
    return event ? await link.call(event) : null
  }
  // The answer to an event, with what the session should be told.
  const textFor = async (session, answer) => {
    const awaited = link.reminders.get(session)
    link.reminders.delete(session)
    const reminder = await awaited
    glance(client, answer?.glance)
    return [reminder, answer?.text].filter(Boolean).join("\n\n")
  }
  // Reports which marks a summary has replaced. Returns what the session should be told again.
  const compacted = async (session) => {
    const taken = summarized.get(session) ?? []
    summarized.delete(session)
    const stay = taken.length ? await marksBehindSummary(client, session).catch(() => taken) : []
    const marks = taken.filter((mark) => !stay.includes(mark))
    return (await call("session.compacted", session, { shown: { marks } }))?.text
  }
  // After an error, the end may not be reported. Then what waited no longer waits; another turn may have begun since.
  const idleAfterError = async (session) => {
    const waited = link.waitingIn(session)
    // A push that begins now is not affected, and may still be on its way.
    const pushed = link.lastPush(session)
    await pushed?.sent.catch(() => {})
    await new Promise((resolve) => setTimeout(resolve, 500).unref?.())
    const { data } = await client.session.status({})
    if (!data || data[session]) return
    await forget(session, waited)
    await tell("session.idle", session)
    if (pushed) await link.look(pushed)
  }

  // Whether something is left to do at the end of a turn. OpenCode has no hook there, so the session gets a new prompt.
  const goesOn = async (session) => {
    if (GUARD === "off" || link.sessions.get(session)?.parent) return false
    const text = (await call("turn.done", session))?.text
    if (text) await link.goOn(session, text)
    return Boolean(text)
  }

  // Its address may be unknown until a question comes.
  const ways = () => [byClient(client), byAddress(new URL(context.serverUrl), directory)]
  const asked = (kind, about) => {
    link.held(about.sessionID, about.tool?.callID)?.goesOn()
    const question = new Question(kind, about, ways)
    const command = about.permission === "bash" && link.commands.get(about.tool?.callID)
    const whole = command ? { ...about, metadata: { command, ...about.metadata } } : about
    link.asked(question, () => tell(`${kind}.asked`, about.sessionID, { asked: shortened(whole) }))
  }
  const settled = (event, { sessionID, requestID, reply, answers }) => {
    const how = { reply, answers }
    return link.settled(requestID, how, () => tell(event, sessionID, { request: requestID, ...how }))
  }
  // In an idle session nothing waits, whatever OpenCode lists.
  const forget = async (session, waited = link.waitingIn(session)) => {
    const waits = link.waitingIn(session)
    for (const request of waited.filter((id) => waits.includes(id))) {
      await link.settled(request, undefined, () => tell("approval.gone", session, { request }))
    }
  }

  // The state of a call, by OpenCode.
  const stateOf = async (session, callID) => {
    const { data } = await byClient(client).get(`/session/${session}/message?limit=${RECENT}`)
    const parts = (Array.isArray(data) ? data : []).flatMap(({ parts }) => parts)
    return parts.findLast((part) => part.callID === callID)?.state
  }
  // Holds a call until a person has decided, the turn has ended or the time is over. Returns the reason if the call is refused.
  const decided = async ({ tool, sessionID, callID }, args, { deny, hold }) => {
    const request = HeldCall.id(sessionID, callID)
    const about = () => tell("call.asked", sessionID, shortened({ request, tool, callID, args, why: hold.why }))
    const held = link.asked(new HeldCall(sessionID, callID, deny, () => stateOf(sessionID, callID)), about)
    const end = () => link.settled(request, LATE, () => tell("approval.outcome", sessionID, { request, ...gone(LATE) })).catch(() => {})
    const timer = setTimeout(end, hold.ms)
    // If the question can't be reported, no one will answer it.
    held.told.then((event) => event ?? end())
    const no = await held.decision
    clearTimeout(timer)
    // A turn that has ended reports that itself.
    if (!held.turnIsOver) await tell("call.decided", sessionID)
    return no
  }

  const events = {
    "session.created": ({ info }) => {
      link.sessions.set(info.id, { client, directory: info.directory ?? directory, parent: info.parentID })
      return tell("session.created", info.id)
    },
    "session.idle": async ({ sessionID }) => {
      compacting.delete(sessionID)
      summarized.delete(sessionID)
      // Calls that were refused. Another session that is about to ask only shows less then.
      link.commands.clear()
      await forget(sessionID)
      if (!failed.delete(sessionID) && (await goesOn(sessionID).catch(() => false))) return
      return tell("session.idle", sessionID)
    },
    "session.error": ({ sessionID }) => {
      if (!sessionID) return
      failed.add(sessionID)
      return idleAfterError(sessionID)
    },
    "session.deleted": async ({ info }) => {
      await forget(info.id)
      await tell("session.deleted", info.id)
      link.sessions.delete(info.id)
    },
    "session.compacted": ({ sessionID }) => void link.reminders.set(sessionID, compacted(sessionID).catch(() => {})),
    "message.part.updated": ({ part }) => part.type === "tool" && link.held(part.sessionID, part.callID)?.shows(part.state),
    "permission.asked": (about) => asked("permission", about),
    "question.asked": (about) => asked("question", about),
    "permission.replied": (about) => settled("permission.replied", about),
    "question.replied": (about) => settled("question.replied", about),
    "question.rejected": (about) => settled("question.rejected", about),
  }

  // The guard's ruling on a tool call. If the guard can't be reached, there is none, unless the user wants a refusal then.
  const judged = async (name, session_id, more, unjudged) => {
    let answer
    try {
      // An unknown session takes no mail, like a subagent.
      const unknown = { hook_event_name: name, session_id, agent_id: session_id, cwd: directory, ...more }
      answer = await link.call((await payload(name, session_id, more)) ?? unknown, JUDGING)
    } catch {}
    return answer === undefined && GUARD === "closed" ? unjudged : answer
  }

  // Nothing here may throw: OpenCode would treat it as a refusal.
  const safely = (hook) => async (...args) => {
    try {
      await hook(...args)
    } catch {}
  }

  return {
    event: safely(({ event }) => events[event.type]?.(event.properties)),

    "chat.message": safely(async ({ sessionID }, { message, parts }) => {
      failed.delete(sessionID)
      const prompt = parts.flatMap(textsOf).join("\n")
      const answer = await call("chat.message", sessionID, { turn_id: message.id, prompt })
      const text = await textFor(sessionID, answer)
      if (text) parts.push({ id: ascending("prt"), sessionID, messageID: message.id, type: "text", text })
    }),

    "tool.execute.before": async ({ tool, sessionID, callID }, { args }) => {
      // Only this plugin says who calls. It goes first: whatever fails below, the model's own claim is gone.
      if (args && typeof args === "object") delete args.baton_caller
      if (GUARD !== "off") {
        const answer = await judged("tool.execute.before", sessionID, { tool, callID, args }, { deny: UNJUDGED })
        // This makes OpenCode not run the call. The model reads the message.
        const no = answer?.hold ? await decided({ tool, sessionID, callID }, args, answer) : answer?.deny
        if (no) throw new Error(no)
      }
      if (typeof args?.command === "string") link.commands.set(callID, args.command)
      // OpenCode does not tell a server which session calls it.
      if (!tool.startsWith("baton_")) return
      await safely(async () => {
        const event = await payload("call", sessionID)
        if (event) args.baton_caller = { session_id: event.session_id, agent_id: event.agent_id, call: callID }
      })()
    },

    "tool.execute.after": safely(async ({ tool, sessionID, callID, args }, result) => {
      link.commands.delete(callID)
      link.held(sessionID, callID)?.goesOn()
      const parts = Array.isArray(result.content)
      const more = { tool_name: tool, tool_use_id: callID }
      const shown = { tool, callID, args, output: parts ? { content: result.content } : { output: result.output } }
      const unseen = { output: parts ? { content: [{ type: "text", text: UNSEEN }] } : { output: UNSEEN } }
      const answer =
        GUARD === "off"
          ? await call("tool.execute.after", sessionID, more)
          : await judged("tool.execute.after", sessionID, { ...more, ...shown }, unseen)
      if (answer?.output) Object.assign(result, answer.output)
      const text = [await textFor(sessionID, answer), answer?.note].filter(Boolean).join("\n\n")
      if (!text) return
      // A tool of a server returns parts, a tool of OpenCode a text.
      if (parts) result.content.push({ type: "text", text })
      else result.output = `${result.output ?? ""}\n\n${text}`
    }),

    "experimental.session.compacting": safely(({ sessionID }) => void compacting.add(sessionID)),

    "experimental.chat.messages.transform": safely(async (_, { messages }) => {
      const session = messages.at(-1)?.info.sessionID
      if (messages.some(({ info }) => info.sessionID !== session)) return
      // A request for a summary is not part of the conversation.
      if (compacting.delete(session)) return void summarized.set(session, allMarks(messages))
      const marks = new Set()
      const ids = []
      let turn_id
      for (const { info, parts } of messages) {
        if (info.role === "user") ids.push((turn_id = info.id))
        for (const part of parts) if (part.type === "tool" && part.state?.status !== "running") ids.push(part.callID)
        for (const mark of marksIn(info, parts)) marks.add(mark)
      }
      const event = await payload("request", session, { turn_id, shown: { marks: [...marks], ids: ids.slice(-400) } })
      if (!event) return
      if (!event.agent_id) for (const mark of marks) link.shown.add(mark)
      link.tell(event)
    }),

    "shell.env": safely(async ({ sessionID, callID }, { env }) => {
      link.held(sessionID, callID)?.goesOn()
      const event = await payload("shell", sessionID)
      if (!event) return
      env.BATON_SESSION_ID = event.session_id
      if (callID) env.BATON_CALL_ID = callID
      if (event.agent_id) env.BATON_SUBAGENT = event.agent_id
    }),
  }
}
