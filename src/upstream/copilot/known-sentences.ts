/**
 * What history, log and the states of accounts keep of an upstream's error: the sentences that upstreams are known to
 * send. Any other words may repeat the prompt, and are withheld.
 */
import { beginningOf } from "../../beginning";

/**
 * One sentence a line, without its full stop. Places: `<n>` a number, `<time>` a time to wait, `<field>` a field of a
 * request, `<id>` the id of a model or the name of a header, `<path>` the path of an endpoint, `<a|b>` one of these
 * words. `<…>` is whatever stands there, and is withheld.
 *
 * Sources: reports of users and the code of clients of GitHub Copilot (2025-03 to 2026-10); the documented and reported
 * errors of OpenAI, Anthropic and Google. The last ones are dragoman's own, about replies that cannot be read.
 */
const sentences = `
The requested model is not supported
model '<id>' is not accessible via the <path> endpoint
The requested model is not available for integrator '<id>'
Available models: [<…>]
Verify the correct Copilot-Integration-Id header is being sent
no endpoints available for this model under your current plan and policies
prompt token count of <n> exceeds the limit of <n>
Request body is too large for model context window
invalid request body
failed to parse request
Bad Request
bad request: missing Editor-Version header for IDE auth
off_topic: <…>
The use of the web search tool is not supported
unauthorized
unauthorized: token expired
IDE token expired: unauthorized: token expired
unauthorized: Personal Access Token does not have Copilot Requests permission
Personal Access Tokens are not supported for this endpoint
unauthorized: not authorized to use this Copilot feature
access to this endpoint is forbidden
The session has expired
Invalid Copilot-Session-Token
Missing Copilot-Session-Token header
input item ID does not belong to this connection
You have no quota
quota exceeded
You have reached your <overage|additional usage> limit
Billing is not configured
Not Found
404 page not found
Timed out reading request body
Try again, or use a smaller request size
Request Entity Too Large
Misdirected Request
Sorry, the response was filtered by the Responsible AI Service
failed dependency
Too many requests
Slow down
Please wait
You have been rate-limited for this model
Sorry, you have been rate-limited
Please wait a moment before trying again
Sorry, you've exceeded your <n> hour session limits
Sorry, you've exceeded your weekly rate limit
Please review our Terms of Service
Please <retry after|try again in> <time>
Please try again later
This integration is rate-limited
The model is overloaded
bad request: the specified API version is no longer supported
You may need to update your client to a newer version
client closed request
upstream provider rate limit
Rate limit exceeded
API rate limit exceeded for user ID <n>
Sorry
Your account <was|is|has been> <suspended|flagged>
Internal server error
Service unavailable
Bad gateway
Gateway timeout

prompt is too long
prompt is too long: <n> tokens > <n> maximum
input length and 'max_tokens' exceed context limit: <n> + <n> > <n>, decrease input length or 'max_tokens' and try again
max_tokens: <n> > <n>, which is the maximum allowed number of output tokens for <id>
<field>: Extra inputs are not permitted
<field>: Field required
<field>: Input should be a valid <string|list|dictionary|integer|number|boolean|array|object>
<field>: Input should be <greater|less> than or equal to <n>
<field>: Input should be <…>
<field>: Input tag '<…>' found using 'type' does not match any of the expected tags: <…>
<field>: String should match pattern '<…>'
<field>: String should have at <most|least> <n> <character|characters>
<field>: List should have at <most|least> <n> <item|items> after validation, not <n>
<field>: text content blocks must be non-empty
<field>: text content blocks must contain non-whitespace text
<field>: all messages must have non-empty content except for the optional final assistant message
<field>: 'tool_use' ids were found without 'tool_result' blocks immediately after: <…>. Each 'tool_use' block must have a corresponding 'tool_result' block in the next message
<field>: unexpected 'tool_use_id' found in 'tool_result' blocks: <…>. Each 'tool_result' block must have a corresponding 'tool_use' block in the previous message
<field>: each tool_use must have a single result
Found multiple 'tool_result' blocks with id: <…>
<field>: 'tool_use' ids must be unique
<field>: Invalid 'signature' in 'thinking' block
<field>: Invalid 'data' in 'redacted_thinking' block
<field>: Expected 'thinking' or 'redacted_thinking', but found '<text|tool_use|image|document>'
<field>: 'thinking' or 'redacted_thinking' blocks in the latest assistant message cannot be modified
These blocks must remain as they were in the original response
<field>: cache_control cannot be set for empty text blocks
<field>: image exceeds <n> MB maximum: <n> bytes > <n> bytes
<field>: cache_control may not be specified within 'tool_result.content'
cache_control may not be specified within 'tool_result.content'
A maximum of <n> blocks with cache_control may be provided
Found <n>
'max_tokens' must be greater than 'thinking.budget_tokens'
'temperature' may only be set to 1 when thinking is enabled
'temperature' and 'top_p' cannot both be specified for this model
Please use only one
'<field>' is deprecated for this model
'<field>' is not supported for this model
Thinking may not be enabled when tool_choice forces tool use
This model does not support assistant message prefill
The conversation must end with a user message
tools: Tool names must be unique
Tool reference '<…>' not found in available tools
Unexpected value(s) '<id>' for the 'anthropic-beta' header
x-anthropic-billing-header is a reserved keyword
Please consult our documentation at <…> or try again without the header
Overloaded
Number of request tokens has exceeded your per-minute rate limit <…>
This request would exceed <your organization's|the> rate limit <…>
Your credit balance is too low to access the Anthropic API
Please go to Plans & Billing to upgrade or purchase credits
invalid x-api-key
Invalid bearer token
Output blocked by content filtering policy
Could not process image
Request exceeds the maximum size
model: <id>

Your input exceeds the context window of this model
Please adjust your input and try again
This model's maximum context length is <n> tokens
However, your messages resulted in <n> tokens
However, your messages resulted in <n> tokens (<n> in the messages, <n> in the functions)
However, you requested <n> tokens (<n> in the messages, <n> in the completion)
Please reduce the length of the messages
Please reduce the length of the messages or <completion|functions>
max_tokens is too large: <n>
This model supports at most <n> completion tokens, whereas you provided <n>
Previous response with id '<…>' not found
The encrypted content could not be decrypted or parsed
The encrypted content <…> could not be verified
Reason: Encrypted content item_id did not match the target item id
Reason: Encrypted content could not be decrypted or parsed
Invalid '<field>': string too <long|short>
Expected a string with <maximum|minimum> length <n>, but got a string with length <n> instead
Invalid '<field>': array too <long|short>
Expected an array with <maximum|minimum> length <n>, but got an array with length <n> instead
Invalid '<field>': empty <string|array>
Expected <a string|an array> with minimum length <n>, but got an empty <string|array> instead
Invalid '<field>': <integer|decimal> <above maximum|below minimum> value
Expected a value <…> <n>, but got <n> instead
Invalid '<field>': string does not match pattern
Expected a string that matches the pattern '<…>'
Invalid type for '<field>': expected <…>, but got <…> instead
Invalid value: '<…>'
Supported values are: <…>
Unsupported value: '<…>' is not supported with the '<id>' model
Unsupported value: '<field>' does not support <…> with this model
Only the default (1) value is supported
Unsupported parameter: '<field>' is not supported with this model
Unsupported parameter: '<field>'
Use '<field>' instead
Unknown parameter: '<field>'
Unrecognized request argument supplied: <field>
Missing required parameter: '<field>'
Function tools with <field> are not supported <…>
Invalid schema for function '<…>': <…>
Invalid schema for response_format '<…>': <…>
input_schema does not support <…>
No tool output found for function call <…>
No tool call found for function call output with call_id <…>
Item '<…>' of type '<reasoning|function_call|message>' was provided without its required <following item|reasoning item>
Item '<…>' of type '<reasoning|function_call|message>' was provided without its required 'reasoning' item: '<…>'
Item with id '<…>' not found
Items are not persisted when 'store' is set to false
Duplicate item found with id <…>
An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'
The following tool_call_ids did not have response messages: <…>
messages with role 'tool' must be a response to a preceeding message with 'tool_calls'
Invalid prompt: your prompt was flagged as potentially violating our usage policy
Please try again with a different prompt
We could not parse the JSON body of your request
The model '<id>' does not exist
The model '<id>' does not exist or you do not have access to it
Incorrect API key provided
You exceeded your current quota, please check your plan and billing details
For more information on this error, read the docs: <…>
Rate limit reached for <…>: Limit <n>, Used <n>, Requested <n>
Requests have exceeded the call rate limit of your tier
Please retry after <time>, or request a quota increase
The server had an error <while processing|processing> your request
Sorry about that!
You can retry your request, or contact us <…>
An error occurred while processing your request
Our servers are currently overloaded
Request timed out
The response was filtered due to the prompt triggering <…> content management policy

Resource has been exhausted (e.g. check quota)
Request contains an invalid argument
Please ensure that function call turn comes immediately after a user turn or after a function response turn

The upstream closed the connection before its reply was complete; nothing after this point is known
The upstream ended its reply with an error that has no message
The upstream's stream contains data that is not <JSON|a chat completion chunk|a response event|a Messages event>
The upstream's answer is not <a chat completion|a response|a Messages reply>
The upstream answered without a summary of the conversation; the next one is asked for in words
The model did not write a whole summary of the conversation; try again, or with another model
`;

/** What may stand at a place. Each takes a bounded number of steps. */
const places: Readonly<Record<string, string>> = {
  n: "\\d{1,9}(?:[.,]\\d{1,3}){0,3}",
  time: "\\d{1,6}(?:\\.\\d{1,3})? ?[a-z]{1,12}(?:,? ?(?:and )?\\d{1,6}(?:\\.\\d{1,3})? ?[a-z]{1,12}){0,3}",
  field: "[a-z_][\\w-]{0,63}(?:\\.[\\w$-]{1,63}|\\[\\d{1,6}\\]){0,16}",
  id: "\\w[\\w.:/@-]{0,99}",
  path: "/[\\w/-]{1,60}",
  "…": "[^]{0,400}?",
};

type PlaceName = keyof typeof places;

interface Sentence {
  pattern: RegExp;
  /** What each group of the pattern is: a place's name, or undefined for words of the table. */
  groups: (PlaceName | undefined)[];
}

const quote = "['\"`‘’“”]";

function read(line: string): Sentence {
  const groups: Sentence["groups"] = [];
  const parts = line.split(/(<[a-z…]+>|<[\w' |]+>)/).filter((part) => part !== "");
  const patterns = parts.map((part, at) => {
    const name = /^<(.+)>$/.exec(part)?.[1];
    groups.push(name !== undefined && Object.hasOwn(places, name) ? name : undefined);
    if (name === undefined) return `(${part.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&").replaceAll("'", quote)})`;
    if (name === "…" && at === parts.length - 1) return "([^]*)";
    return `(${places[name] ?? name.replaceAll("'", quote)})`;
  });
  return { pattern: new RegExp(`${patterns.join("")}(?=$|\\n|[.!](?:\\s|$))`, "iy"), groups };
}

/** Read with the first error. */
let table: readonly Sentence[] | undefined;

/** Characters of an error's message that are looked at. */
const maxLength = 2000;

/** The sentences at the beginning of a message that are known, with `…` for what they repeat; and whether that is all. */
function knownBeginning(message: string): { known: string; isAll: boolean } {
  table ??= sentences.trim().split(/\n+/).map(read);
  const text = beginningOf(message.trim(), maxLength);
  let known = "";
  let at = 0;
  while (at < text.length) {
    let best: { end: number; shown: string } | undefined;
    for (const { pattern, groups } of table) {
      pattern.lastIndex = at;
      const found = pattern.exec(text);
      if (!found || pattern.lastIndex <= (best?.end ?? at)) continue;
      const shown = groups.map((place, index) => shownAt(place, found[index + 1]!)).join("");
      best = { end: pattern.lastIndex, shown };
    }
    if (!best) break;
    const [between = ""] = /^[.!]?\s*/.exec(text.slice(best.end)) ?? [];
    known += best.shown + between;
    at = best.end + between.length;
  }
  return { known: known.trim(), isAll: at >= text.length };
}

function shownAt(place: PlaceName | undefined, text: string): string {
  if (place === "…") return text === "" ? "" : "…";
  return place === "field" ? wirePath(text) : text;
}

/** Members whose own members have names that the client chose. */
const namedByClient: ReadonlySet<string> = new Set(
  "properties $defs definitions patternProperties arguments metadata logit_bias".split(" "),
);

/** The path of a field as far as the wire format names it. */
function wirePath(path: string): string {
  const segments = path.split(".");
  const last = segments.findIndex((name, at) => namedByClient.has(name) || (name === "input" && at > 0));
  return last < 0 || last === segments.length - 1 ? path : `${segments.slice(0, last + 1).join(".")}.…`;
}

const pathPattern = new RegExp(`^${places.field}$`, "i");

/**
 * What is kept of an upstream's error, in place of its message.
 * @param from `who` begins a sentence: `GitHub Copilot`. `status` is missing for an error within a reply. `param` is the
 * field that the error names.
 */
export function keptWords(
  message: string,
  { who, status, param }: { who: string; status?: number; param?: string },
): string {
  const { known, isAll } = knownBeginning(message);
  if (isAll && known !== "") return known;
  const field = param !== undefined && pathPattern.test(param) ? ` The field is \`${wirePath(param)}\`.` : "";
  if (known !== "")
    return `${/[.!]$/.test(known) ? known : `${known}.`}${field} The rest is withheld, because it may repeat the prompt.`;
  const what = status === undefined ? "reported an error" : `answered with status ${status}`;
  return `${who} ${what}.${field} Its words are withheld, because they may repeat the prompt.`;
}
