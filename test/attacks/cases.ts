/**
 * What is tried against the proxy, row by row: attacks, faults, and what people reported of others. Each row has a test
 * whose name begins with its id, or says here where it is shown instead, or why it cannot be shown on this machine.
 */

export interface LedgerRow {
  id: string;
  title: string;
}

export const attacks: readonly LedgerRow[] = rowsOf(`
AU01 | POST /v1/chat/completions, no key
AU02 | POST /v1/messages, x-api-key: k-alpha-0123456780 (same length, wrong)
AU03 | key truncated by one; key + one char; key upper-cased
AU04 | Authorization: bearer k-alpha-..., Bearer  k-alpha-... (2 spaces)
AU05 | Authorization: Bearer, Basic base64(:k-alpha...), Token k-alpha...
AU06 | wrong x-api-key + right Bearer; right x-api-key + wrong Bearer
AU07 | two x-api-key headers, one right (runtime joins with comma)
AU08 | ?key=, ?api_key=, cookie x-api-key= with the right key
AU09 | x-api-key: empty; only spaces
AU10 | config auth.apiKeys: [""], [" "], [1], "k" at start
AU11 | each without key: GET /v1/models, POST /v1/embeddings, /v1/responses …
AU12 | HEAD /v1/models, HEAD /token without key
AU13 | OPTIONS /v1/models without key, no Origin
AU14 | PROXY_API_KEY env set and auth.apiKeys set: request with the env key
AU15 | 15 KB key; key with byte 0xFF; key with NUL
AU16 | unknown model with wrong key
AU17 | ADMIN_TOKEN value as client key; client key as x-admin-token from LAN
AU18 | 5,000 wrong keys at 500/s, then one right
AU19 | 20,000 timed tries: first byte right vs all wrong
AU20 | GET /v1/responses with Upgrade: websocket
AU21 | key removed by POST config while a stream with it runs
AD01 | LAN, honest Host, GET /api/admin/meta
AD02 | LAN, Host: localhost:P and Host: 127.0.0.1:P
AD03 | LAN + X-Forwarded-For / X-Real-IP / Forwarded: for=127.0.0.1
AD04 | LAN, ADMIN_TOKEN set: none; wrong; prefix; right via x-admin-token; right via Bearer
AD05 | LAN, ?token=, ?admin_token=, cookie
AD06 | ADMIN_TOKEN="" or spaces; LAN with empty x-admin-token
AD07 | loopback, Host: evil.example:P
AD08 | loopback, Host localhost, one of 10 forwarding headers each
AD09 | [::1]:P peer and Host; peer ::ffff:127.0.0.1; Host 127.0.0.2; Host LOCALHOST
AD10 | Host localhost., foo.localhost, localhost.evil.example, 127.0.0.1.nip.io …
AD11 | RAW HTTP/1.0 no Host GET /xxxxxxxxxxxx/api/admin/meta
AD12 | RAW Host: a b, evil@localhost, localhost#x, localhost/x, empty, with path …
AD13 | RAW two Host headers (both orders)
AD14 | RAW GET http://localhost/api/admin/meta with Host evil; and absolute evil with Host …
AD15 | X_Forwarded_For: 127.0.0.1, X-Original-URL: /, X-Rewrite-URL …
AD16 | /api/admin/requests?limit= 0, -1, abc, 1.5, 1e9, 2^53
AD17 | cursor_id= -1, abc, 1.5, 9e99; status=abc; has_error=2; from_ms=NaN
AD18 | every text filter is SQL, %, NUL or 10 KB
AD19 | GET /api/admin/requests/ + unknown, %00, ..%2f.., 8 KB
AD20 | GET /api/admin/config with canaries in every secret field
AD21 | 1,000 wrong tokens from LAN, then the right one from another address
AD22 | loopback admin while client keys are set, no client key
AD23 | /api/admin, /api/admin/, /api/admin/nope, DELETE /api/admin/config from LAN
AD24 | two loopback requests on one keep-alive connection: first good Host, second Host …
AD25 | another OS user (uid differs) on loopback, Linux, uid check on
XO01 | POST /v1/messages, Origin: https://evil.example, JSON
XO02 | same with Origin: null
XO03 | same, no Origin, Sec-Fetch-Site: cross-site
XO04 | same, Sec-Fetch-Site: same-site (page on localhost:3000)
XO05 | Content-Type: text/plain body of JSON to POST /api/admin/config, loopback, no Origin
XO06 | HTML form urlencoded / multipart to POST /api/admin/config with Origin evil
XO07 | OPTIONS /api/admin/config Origin evil + ACR-Method POST …
XO08 | GET /token as script tag: Sec-Fetch-Site cross-site, Mode no-cors
XO09 | GET /token, GET /usage, GET /v1/models with Host: evil.example:P and nothing else …
XO10 | POST with Host: evil.example:P and Origin: http://evil.example:P (rebound, "same …
XO11 | Origin http://localhost.evil.example, http://localhost:P.evil.example …
XO12 | Origin http://127.0.0.1:P with Host localhost:P on admin POST
XO13 | duplicate Origin headers, one good
XO14 | Host: 0.0.0.0:P on admin and /token
XO15 | cross-site navigation (Mode navigate, Dest document) GET /admin
XO16 | GET /admin headers
XO17 | any /v1 answer, no Origin
XO18 | allowedOrigins: ["http://localhost:3000"]: that Origin; then http://localhost:30001 …
XO19 | allowedOrigins "*", "null", "http://a/b", "localhost" in config
XO20 | upstream answers with Access-Control-Allow-Origin: * and Set-Cookie
XO21 | bridge peer (network namespace), Host localhost:4141, GET /api/admin/meta
XO22 | WebSocket handshake with Origin evil to every route
CF01 | {"foo":1}
CF02 | {"logLevel":"debug","foo":1}
CF03 | {"auth":{"foo":1}}, {"providers":{"x":{"foo":1,...}}}
CF04 | logLevel 1, useResponsesApiWebSearch "true", auth [], providers [], apiKeys "k …
CF05 | logLevel "verbose"
CF06 | {"__proto__":{"x":1}}, {"constructor":{"prototype":{"x":1}}} …
CF07 | provider names "", v1, admin, api, usage, token, a/b, .., "a b", %2e, 1,000 chars …
CF08 | baseUrl javascript:, file:///…, data:, ftp:, http://evil.example …
CF09 | existing provider, new baseUrl origin, no apiKey
CF10 | null, [], "x", 1, empty, {
CF11 | 2 MB body; 1,001 providers; 1,001 keys
CF12 | content type text/plain, form, none
CF13 | 50 parallel posts with 50 values
CF14 | file edited on disk meanwhile (valid)
CF15 | GET then POST the same object back
CF16 | apiKey equal to the mask; apiKey with CR/LF/NUL/emoji
CF17 | {"auth":{"apiKeys":["new"]}}
CF18 | empty keys from LAN with ADMIN_TOKEN while bound 0.0.0.0
CF19 | data dir read-only
CF20 | duplicate keys {"logLevel":"debug","logLevel":"error"}
CF21 | vendorxApiKey and anthropicApiKey both, different
BO01 | {"a": to each of the five POST routes
BO02 | empty; null; []; "x"; 1; no content type with JSON body and no browser headers
BO03 | invalid UTF-8 bytes inside a string
BO04 | UTF-8 BOM + valid JSON
BO05 | 100,000 nested arrays; 1,000,000
BO06 | 32 MiB + 1, with length and chunked
BO07 | Content-Encoding: gzip request
BO08 | {"model":"m","__proto__":{"stream":true},"constructor":{}}
BO09 | model: 1, null, empty, 10 KB, ../../x, with CR LF, claude-x[1m]
BO10 | max_tokens -1, 0, 1e308, "10", NaN literal
BO11 | messages: [], [null], role 1, content 5, 100,000 items
BO12 | stream:"true"
BO13 | Content-Length 1000, 10 bytes sent, silence
BO14 | count_tokens on 5 MB of "a", of spaces, of emoji
BO15 | object with 100,000 keys; key 1 MB long
BO16 | integer 9007199254740993 in a native passthrough
BO17 | lone surrogate in text
BO18 | 20 MB base64 image
HD01 | RAW CL+TE, two CL, CL +5/-5/20 digits
HD02 | RAW TE xchunked, chunked+identity, VT before chunked, Content-Length :, obs-fold …
HD03 | 20 KB header, 300 headers, 20 KB URL
HD04 | TRACE, CONNECT evil:443, FOO
HD05 | pipelined unauth + auth requests
HD06 | Connection: x-api-key
HD07 | client sends Cookie, Authorization, x-api-key, Origin, X-Forwarded-For, User-Agent with ESC
HD08 | x-request-id: <script> / 10 KB
HD09 | vendorx-beta: interleaved-thinking-2025-05-14,evil ; 8 KB list
HD10 | Expect: 100-continue + wrong key + 30 MB body
HD11 | Range, If-None-Match, Accept: text/html on API
HD12 | 1,000 idle connections + 1 request
HD13 | TLS hello / HTTP/2 preface on the port
HD14 | Content-Type: application/json; charset=utf-16
SS01 | SSE line of 1 GB without newline
SS02 | endless data: lines, no blank line; 100,000 empty data: lines
SS03 | 5 million 20-byte events
SS04 | CRLF, CR, mixed, BOM, comments, unknown events, retry:
SS05 | each multi-byte char split at each byte
SS06 | invalid JSON in one data line
SS07 | FIN without [DONE]/message_stop/response.completed
SS08 | bytes after the terminator
SS09 | 200 text/html to stream and non-stream
SS10 | 200 empty body; 204; 999; 101; 103 flood
SS11 | gzip bomb 200 KB -> 200 MB
SS12 | 200 KB response header; Set-Cookie; x-goog-api-key/authorization echoed
SS13 | 301/302/307/308 to the evil server
SS14 | Retry-After 99999999, -1, abc, 1970 date
SS15 | tool_calls index 2147483647, -1, 1e6 calls
SS16 | tool id/name __proto__, constructor
SS17 | usage -5, 1e308, "7", null
SS18 | token exchange: refresh_in 0, -1, NaN, 2^40; expires_at in the past
SS19 | token exchange: endpoints.api = http://evil, https://evil.example
SS20 | token value with CR/LF or 1 MB
SS21 | device flow: verification_uri other host or javascript:; interval 0/-1/1e9
SS22 | models: 100,000 entries; names with HTML, ANSI, 10 KB
SS23 | error body 50 MB; error body with our key in it
SS24 | trickle one byte per 20 s for 1 h
PR01 | POST /nope/v1/messages
PR02 | /__proto__, /constructor, /toString, /hasOwnProperty + /v1/messages
PR03 | /%2e%2e%2fadmin/v1/models, /%zz/v1/models, /a%2fb/v1/models, /%F0%9F%98%80/v1/models
PR04 | provider 401
PR05 | provider baseUrl = our own address
PR06 | client key, cookies, admin token
PR07 | HTTP_PROXY set, provider on 127.0.0.1
PR08 | baseUrl with trailing slash, with path
PR09 | ?beta=true&x=%0d%0a
PR10 | provider models answer 50 MB / not JSON
PR11 | provider removed mid-stream
PR12 | count_tokens on a provider with vendorxApiKey set
PA01 | /admin/ with .. in every spelling
PA02 | /admin/assets/../../dist2/x
PA03 | /.env /.git/config /config.json /admin.sqlite /admin/*.map
PA04 | //admin, /ADMIN, /admin;x, /%61dmin, /api%2fadmin%2fconfig
PA05 | LAN /v1/../api/admin/config, /api/admin/meta/
CL01 | cwd with bunfig.toml preload: binary, npm bin, bunx
CL02 | a folder whose .env sets ADMIN_TOKEN, addresses, proxies, TLS
CL03 | --port abc, -1, 70000, 4141.5, "", 0x10
CL04 | --host 999.1.1.1, "a b"; 0, 0x0, ::0
CL05 | --enterprise-url https://x, a@b, a/b, x#y, "a b", -x, localhost, 127.0.0.1
CL06 | --oauth-app ../../x, a/b, ""
CL07 | --idp-token "", with newline, with space
CL08 | auth rm 0, -1, 999, ../x
CL09 | unknown flag / command with --json
CL10 | DRAGOMAN_GITHUB_URL=http://evil ; =http://127.0.0.1:1
CL11 | stdout closed by the parent (EPIPE)
CL12 | model id with a shell command in generated shell lines
FS01 | umask 000, fresh start, one request, one config POST
FS02 | existing 755 dir and 644 files
FS03 | data dir is a symlink to a world-writable dir; config owned by another uid
FS04 | config.json is a symlink (dotfiles)
FS05 | config.json is a FIFO, a directory, 100 MB, binary
FS06 | registry with id ../../x
FS07 | token file empty, BOM, CRLF, 1 MB
FS08 | leftover *.tmp-*
FS09 | auth rm
XS01 | client_model <img src=x onerror=alert(1)> in history
XS02 | upstream model, account id, provider name, error text with "><svg onload=...>
XS03 | provider baseUrl javascript: (forced into the file)
XS04 | a closing script tag in any value embedded in the page
XS05 | URL hash/query filters with markup
XS06 | 10 KB name, RTL and zero-width chars
XS07 | admin token typed in the UI
LG01 | canary sweep: GitHub token, Copilot token, client key, ADMIN_TOKEN, provider key …
LG02 | CR, LF, ANSI, OSC 52, NUL in model/path/UA
LG03 | exception thrown with a Request or headers attached
LG04 | log sink full or closed
LG05 | 10,000 errors/s
`);

export const faults: readonly LedgerRow[] = rowsOf(`
T01 | Copilot token expires mid-life: upstream 401
T02 | 200 parallel requests hit 401
T03 | 401 persists after refresh
T04 | exchange 500 x3 then ok
T05 | exchange hangs
T06 | exchange 401/403/404 (revoked, no seat)
T07 | exchange returns HTML 200 / truncated JSON / huge
T08 | clock 1 day ahead / behind; jumps while running
T09 | laptop sleeps past expiry
T10 | refresh_in 0 / -1 / 2^40 / missing
T11 | all accounts fail at start
T12 | zero accounts
T13 | quota ends at account 1 mid-run
T14 | quota ends on all
T15 | 429 Retry-After: 2 with one account
T16 | quota endpoint down
T17 | account added/removed by the CLI while running
T18 | temporary account index shift
U01 | connection refused
U02 | DNS fails
U03 | TLS: expired, wrong host, self-signed, plain HTTP on 443
U04 | no headers ever
U05 | 500/502/503/504/529 before first byte
U06 | reset before headers (fresh / re-used connection)
U07 | idle keep-alive closed by upstream between requests
U08 | reset after 3 chunks, x3 formats x3 upstream kinds
U09 | FIN without terminator (chunked; close-delimited)
U10 | invalid JSON chunk / half chunk then FIN
U11 | silence 300 s mid-stream
U12 | thinking gap 200 s then data
U13 | CRLF / split UTF-8 / split across data:
U14 | no [DONE] but finish_reason present
U15 | 200 HTML (captive portal)
U16 | slow upstream, fast client and reverse
U17 | client disconnects before headers / mid-stream / in silence
U18 | client half-closes after sending
U19 | slowloris headers; slow body
U20 | HTTPS_PROXY dead / 407 / 502 on CONNECT
U21 | NO_PROXY, loopback provider with proxy set
U22 | HTTP_PROXY with user:pass
U23 | upstream 101/1xx oddities, 204 with stream
U24 | upstream flips between 200 and 500 at 50 %
U25 | one provider dead, others fine
U26 | model list refresh fails
S01 | disk full
S02 | config write on full disk
S03 | data dir read-only / removed while running
S04 | admin.sqlite corrupt (header / one page / truncated)
S05 | newer schema (user_version higher)
S06 | older schema
S07 | DB locked by another process for 10 s
S08 | WAL grows (long reader)
S09 | row cap and retention
S10 | config invalid JSON at start
S11 | config half-written by an editor while running
S12 | config edited (valid) while running
S13 | kill -9 during 1,000 config POSTs
S14 | two instances, one data dir, started in the same instant
S15 | token file unreadable (chmod 000, other owner)
S16 | history clock goes backwards
P01 | port in use
P02 | [::1] port taken by someone else
P03 | kill -9 under 500 req/s then restart, 25 rounds
P04 | kill -9: requests in flight
P05 | SIGTERM with 50 streams
P06 | SIGINT x2, SIGHUP, SIGPIPE
P07 | unhandled rejection / exception in a request
P08 | 1,000 concurrent streams
P09 | 300 parallel upstream calls
P10 | 10,000 queued requests over the limit (2,000)
P11 | memory ceiling
P12 | fd limit 256
P13 | CPU starved (100 % busy neighbour, 1 core)
P14 | event loop blocked by count_tokens on 5 MB
P15 | SIGSTOP 30 s
P16 | stdout/stderr reader gone
P17 | parent dies in subprocess mode
P18 | IPv6 disabled
P19 | soak 1 h mixed load
P20 | timezone/locale change, year 2038 timestamps, leap second
`);

/** From people's reports. Ids that another table has too are not looked for in names: {@link shownBy} says where they are. */
export const reports: readonly LedgerRow[] = rowsOf(`
S1 | nothing is sent for long while the model thinks
S2 | the upstream's socket is reset before the first byte
S3 | reset in the middle of text
S4 | reset in the middle of a tool's arguments
S5 | a stream ends with no finish reason
S6 | 200, then an error object as the first event
S7 | 200, and the stream closes with no event
S8 | a chunk with empty choices
S9 | text in choice 0, the tool call in choice 1
S10 | a tool with empty arguments
S11 | a stream split at any byte, CRLF, UTF-8 cut in half
S12 | the client leaves before the first byte, in the middle, or in a full answer
S13 | slow client, fast upstream
S14 | the upstream never answers with headers
S15 | a pooled socket gives request B the answer of request A
S16 | a WebSocket's 60 minutes
S17 | usage arrives only at the end, or never
S18 | shutdown with live streams
T1 | a tool_use without its tool_result
T2 | call_ and fc_ ids between chat and Responses
T3 | an item id bound to another connection or account
T4 | encrypted reasoning that cannot be decrypted
T5 | a thinking signature of another model, account or vendor
T6 | a signature bound to a conversation's prefix
T7 | cache_control inside a tool result, or with a scope
T8 | context_management refused
T9 | an effort the model does not have
T10 | tools with effort refused on the chat endpoint
T11 | max_tokens refused
T12 | more tools than a model takes
T13 | tool names too long, with odd characters, or alike when cut
T14 | a tool's schema without properties, with references, with null types
T15 | images: in a turn, in a tool result, as URL, too many
T16 | a PDF or document block
T17 | the last message is the assistant's
T18 | the system prompt as text, array, developer role, empty
T19 | web search alone, with other tools, streamed
T20 | an unknown content block or field
T21 | the spellings of a model id
T22 | [1m] where the account has less
T23 | empty text blocks, blank turns, two user turns in a row
T24 | embeddings of text, array, tokens, nothing, too many
K1 | tools, results, thinking and images count
K2 | an estimate too low on Claude
K3 | cached tokens in each API's own definition
K4 | the exact counter is down, slow, or refuses the key
K5 | a prompt over the limit
K6 | the compaction request itself is over the limit
K7 | 30 MB, deep nesting, 3,000 messages
K8 | a count is marked as an estimate
A1 | the first call after eight hours of sleep
A2 | the clock jumps back or forward
A3 | a token refused at refresh_in, though its end is later
A4 | 401 in mid-session
A5 | 50 parallel calls at expiry
A6 | the exchange is down for five minutes
A7 | the GitHub token is revoked
A8 | the quota of account 1 is used up
A9 | all accounts are exhausted
A10 | 429 with and without retry-after, and its codes
A11 | 403 that speaks of abuse
A12 | 403: a model's policy is not enabled
A13 | 421, the wrong host
A14 | the API version is no longer supported
A15 | device flow: denied, expired, slow_down, network loss, the same person again
A16 | a direct token takes index 0
A17 | remaining -1, unlimited, overage, entitlement 0
A18 | premium requests and credits are never added
A19 | a 400 leaves the account's state alone
A20 | the account of a session cannot serve
A21 | auth rm 1 and /usage/0
P1 | the admin pages through a container's published port
P2 | DNS rebinding
P3 | a page of another origin: simple POST, preflight, null origin
P4 | listening beyond this machine without keys
P5 | localhost is ::1 only
P6 | the port is taken
P7 | the parent is killed, stdin ends
P8 | two instances with one data folder
P9 | the database is locked, corrupt, newer, or its disk full
P10 | row cap and age under load
P11 | Windows: folders with spaces and umlauts, CRLF, a held file
P12 | the config edited by hand while running
P13 | a config POST races with an edit
P14 | proxies, NO_PROXY, TLS interception
P15 | a volume that cannot be written
P16 | the signature of a macOS executable
P17 | old processors, musl
P18 | slow or offline start
P19 | a log or an error contains a token
P20 | memory after 10,000 streams
`);

/** Rows that no test on this machine can show, and why. */
export const notHere: Readonly<Record<string, string>> = {
  P19: "an hour long, and no test of a suite: `bun run test:soak 60` runs it, with the same judgement of each answer",
};

/** The same for reports, where an id alone would be another table's. */
export const reportsNotHere: Readonly<Record<string, string>> = {
  P1: "needs a container; AD01 to AD08 show the same rule",
  P11: "needs Windows; folders with spaces, byte order marks and CRLF are tested here",
  P16: "needs macOS; the release makes its page hashes fit, looks at each, and asks codesign",
  P17: "needs old processors and another C library; the release starts its musl executable on one",
};

/** Attacks on the admin pages, which are shown by tests of other names. */
export const shownByPages: Readonly<Record<string, string>> = {
  XO16: "admin/pages.test.ts: allows nothing but its own, and is not kept",
  XS01: "admin/browser.test.ts: cannot run anything by names of models",
  XS02: "admin/browser.test.ts: cannot run anything by names of models",
  XS03: "admin/browser.test.ts: cannot run anything by names of models",
  XS04: "admin/pages.test.ts: renders with data, marked as a demo, with nothing inline",
  XS05: "admin/pages.test.ts: is text, never markup",
  XS06: "admin/pages.test.ts: is shown, shortened, and cannot turn",
  XS07: "admin/pages.test.ts: gives a cookie that is not the token",
};

/** Reports that are shown by tests of other names: `file: the beginning of the name, or a word of it`. */
export const shownBy: Readonly<Record<string, string>> = {
  S1: "relay/stream.test.ts: of 40 s is survived",
  S2: "faults/transport.test.ts: U06: a reset at once on a connection that was kept",
  S3: "attacks/upstream.test.ts: U08: a reset in the middle",
  S5: "attacks/upstream.test.ts: SS07, U09",
  S8: "dialects/chat.test.ts: is understood, whatever the size of the chunks",
  S9: "dialects/chat.test.ts: split choices finish with tool_calls",
  S10: "dialects/chat.test.ts: numbers parallel calls and writes {}",
  S11: "net/sse.test.ts: a stream cut at any byte",
  S12: "faults/transport.test.ts: in [demo: %s]: the upstream is let go",
  S13: "faults/transport.test.ts: U16",
  S14: "net/fetch.test.ts: U04",
  S15: "faults/transport.test.ts: of many answers under way each goes to who asked",
  S16: "api/responses-socket.test.ts: comes at its age, after the answer",
  S17: "dialects/messages.test.ts: the usage at the end corrects",
  S18: "cli/start.test.ts: P05",
  T1: "dialects/chat.test.ts: answers every call directly after it",
  T2: "dialects/adapt.test.ts: ids of calls become words",
  T3: "api/responses.test.ts: items of another account are left out",
  T4: "dialects/responses.test.ts: are taken out, with all ids",
  T6: "attacks/reports.test.ts: T6: once there is thinking",
  T7: "attacks/reports.test.ts: T7",
  T8: "attacks/reports.test.ts: T8",
  T9: "api/responses.test.ts: an unsupported effort is lowered",
  T10: "attacks/reports.test.ts: are answered all the same, and the second request knows",
  T11: "dialects/chat.test.ts: takes the newer of two names for one limit",
  T12: "dialects/adapt.test.ts: more tools than a chat model takes",
  T13: "dialects/adapt.test.ts: too long or of other letters become words",
  T14: "dialects/chat.test.ts: gives a tool without parameters",
  T15: "api/messages.test.ts: pictures and documents reach the model",
  T16: "dialects/messages.test.ts: reads documents: a PDF as a file",
  T17: "attacks/reports.test.ts: messages-no-prefill",
  T18: "attacks/reports.test.ts: T18: the same system prompt",
  T19: "relay/web-search.test.ts: Claude Code's own request for a search is served",
  T20: "dialects/responses.test.ts: unknown items, parts, tools",
  T21: "upstream/model-name.test.ts: an unknown version is refused with the three nearest",
  T22: "api/messages.test.ts: fact 11: a bracketed suffix",
  T23: "attacks/reports.test.ts: T23: two turns of a person in a row",
  T24: "api/embeddings.test.ts: of more texts than one call takes",
  K1: "dialects/estimate.test.ts: %s, and more for more of it",
  K2: "dialects/estimate.test.ts: more than the vocabulary says",
  K3: "dialects/messages.test.ts: numbers are Anthropic",
  K5: "relay/failures.test.ts: fact 9: a prompt over the limit",
  K6: "api/messages.test.ts: fact 9: also where the upstream says it only in its answer",
  K7: "attacks/gate.test.ts: BO05: %i arrays within each other",
  K8: "api/count-tokens.test.ts: the answer is an estimate, marked as one",
  P2: "api/access.test.ts: XO09",
  P3: "api/access.test.ts: XO01",
  P4: "cli/start.test.ts: CL04",
  P5: "cli/start.test.ts: P02",
  P6: "cli/start.test.ts: P01",
  P7: "cli/child.test.ts: P17: killed without a word",
  P8: "config/live.test.ts: S14",
  P9: "faults/storage.test.ts: S01",
  P10: "faults/storage.test.ts: S09: of 250,000 rows",
  P12: "config/live.test.ts: S12",
  P13: "admin/config.test.ts: CF14",
  P14: "net/proxy.test.ts: U21: the same variables and exceptions count",
  P15: "config/store.test.ts: in a read-only folder is an error",
  P18: "relay/accounts.test.ts: T11, A6: at the start, for all",
  P19: "attacks/logs.test.ts: LG01",
  P20: "faults/load.test.ts: P20: after 20,000 streams",
};

function rowsOf(table: string): LedgerRow[] {
  return table
    .trim()
    .split("\n")
    .map((line) => {
      const at = line.indexOf(" | ");
      return { id: line.slice(0, at), title: line.slice(at + 3) };
    });
}
