/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The rows of the requests page: running requests first, then those in the history. */

import type { NameColumn } from "../../../books/history/entry";
import { endedHere } from "../../../lib/errors";
import { percent, plural } from "../../../lib/format";
import { costsOf } from "../../../lib/money";
import { nothingSent } from "../../../proxy/relay/nothing";
import type { ShownEntry, ShownPage, ShownRunning } from "../../api/requests";
import { CostOf, Duration, Moment, Tokens, Unknown, Value } from "../../ui/format";
import { ActionButton } from "../../ui/forms";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import type { Frame } from "../../ui/layout";
import { filteredPath, firstRows, requestPath, requestsPath } from "../../ui/links";
import { CursorPager, Empty, Table } from "../../ui/lists";
import { ToolName } from "../../ui/tool-name";
import type { MemberNames } from "../member-names";
import { hasOneName } from "../request/fixups";
import { chipsOf, type RequestsView } from "./view";

interface RunningRowsProps {
  /** Those that match the filters. */
  running: ShownRunning[];
  elsewhere: string | undefined;
  frame: Frame;
  names: MemberNames | undefined;
  now: number;
}

export function RunningRows({ running, elsewhere, frame, names, now }: RunningRowsProps): Markup {
  return (
    <section class="running" aria-label="Running now" hidden={running.length === 0 && !elsewhere}>
      <h2>{plural(running.length, "request")} running</h2>
      {elsewhere && <p class="soft">{elsewhere}</p>}
      <ul>
        {running.map((request) => (
          <li>
            <a href={requestPath(request.request_id)}>
              <Value of={request.upstream_model ?? request.client_model} />
            </a>
            <span class="soft">
              {request.member !== null && names && (
                <>
                  <Value of={names.nameOf(request.member)} max={30} /> ·{" "}
                </>
              )}
              <ToolName of={request.client_name} /> · {request.parent_id !== null && `${request.path} · `}
              {request.waits_until_ms !== null ? (
                <>
                  waits until <Moment at={request.waits_until_ms} now={now} seconds={true} /> for its turn:{" "}
                  <Value of={request.waited_for} />
                </>
              ) : request.first_byte_ms === null ? (
                "waiting for the first byte"
              ) : (
                "responding"
              )}{" "}
              · <Duration of={Math.max(0, now - request.started_at_ms)} />
            </span>
            <ActionButton
              frame={frame}
              to={`${requestPath(request.request_id)}/cancel`}
              label={`Cancel the request for ${request.client_model ?? "a model"}`}
            >
              Cancel
            </ActionButton>
          </li>
        ))}
      </ul>
    </section>
  );
}

interface RequestRowsProps {
  list: ShownPage;
  view: RequestsView;
  nothingYet: boolean;
}

export function RequestRows({ list, view, nothingYet }: RequestRowsProps): Markup {
  if (list.items.length === 0) return <Nothing view={view} nothingYet={nothingYet} />;
  const tags = rowTags.filter(({ column }) => list.items.some((item) => item[column] !== null));
  return (
    <Table
      class="rows requests"
      caption="Requests, newest first"
      // The history is paged in the order in which requests ended; a page of it is shown by the times that it shows.
      rows={list.items.toSorted((one, other) => other.started_at_ms - one.started_at_ms)}
      columns={[
        ["Time", (item) => <Began item={item} now={view.now} />],
        ["Model", modelOf],
        ["Client", (item) => <ToolName of={item.client_name} max={22} />],
        ...tags.map(({ column, name }) => [name, (item: ShownEntry) => tagOf(item, column)] as const),
        ["Account", (item) => <AccountOf item={item} names={view.names} />],
        ["Result", (item) => <Status item={item} />],
      ]}
      numbers={[
        ["Tokens", (item) => <TokensOf item={item} />],
        ["Cost", (item) => <CostOf of={costsOf(item)} />],
        ["First byte, total", tookOf],
      ]}
    />
  );
}

/** What some requests name and others do not: it has a column if a row on the page names one. */
export const rowTags = [
  { column: "key_name", name: "Key" },
  { column: "project", name: "Project" },
  { column: "route", name: "Route" },
] as const satisfies { column: NameColumn; name: string }[];

const Began = ({ item, now }: { item: ShownEntry; now: number }) => (
  <>
    <a href={requestPath(item.request_id)}>
      <Moment at={item.started_at_ms} now={now} seconds={true} />
    </a>
    <small>{item.parent_id === null ? dialectsOf(item) : item.path}</small>
  </>
);

function modelOf(item: ShownEntry): Markup {
  const { client_model, upstream_model } = item;
  const notes = notesOf(item);
  return (
    <>
      <Value of={upstream_model ?? client_model} max={40} />
      {upstream_model !== null && spelling(client_model) !== spelling(upstream_model) && (
        <small>
          requested as <Value of={client_model} max={40} />
        </small>
      )}
      {notes.length > 0 && <small>{notes.join(" · ")}</small>}
    </>
  );
}

const tagOf = (item: ShownEntry, column: (typeof rowTags)[number]["column"]) =>
  item[column] === null ? (
    <span class="soft">none</span>
  ) : (
    <a href={requestsPath({ [column]: item[column] })}>
      <Value of={item[column]} max={20} />
    </a>
  );

const AccountOf = ({ item, names }: { item: ShownEntry; names: MemberNames | undefined }) => (
  <>
    {item.account_id === null ? (
      <span class="soft">{item.initiator_reason === nothingSent.reason ? "none: nothing sent" : "none"}</span>
    ) : (
      <Value of={nameOf(item)} max={16} />
    )}
    {names && item.member !== null && (
      <small>
        of <Value of={names.nameOf(item.member)} max={16} />
      </small>
    )}
  </>
);

const tookOf = ({ first_byte_ms, duration_ms }: ShownEntry) => (
  <>
    {first_byte_ms !== null && (
      <>
        <Duration of={first_byte_ms} />
        <span class="soft">, </span>
      </>
    )}
    <Duration of={duration_ms} />
  </>
);

/** `claude-opus-5-5` and `claude-opus-5.5` are one name, as Anthropic and as GitHub spell it. */
const spelling = (model: string | null) => model?.replaceAll(".", "-");

function TokensOf({ item: { input_tokens, output_tokens, cached_tokens } }: { item: ShownEntry }): Markup {
  if (input_tokens === null && output_tokens === null) return <Unknown />;
  return (
    <>
      <Tokens of={input_tokens} />
      <span class="soft"> in, </span>
      <Tokens of={output_tokens} />
      <span class="soft"> out</span>
      {cached_tokens !== null && cached_tokens > 0 && input_tokens !== null && (
        <small>{percent(cached_tokens / input_tokens)} cached</small>
      )}
    </>
  );
}

/** The dialects used: `messages`, or `messages → chat` if translated. */
function dialectsOf({ client_dialect, upstream_dialect }: ShownEntry): string {
  return upstream_dialect === null || upstream_dialect === client_dialect
    ? client_dialect
    : `${client_dialect} → ${upstream_dialect}`;
}

function notesOf(item: ShownEntry): string[] {
  const { attempts, fixups, dropped, tokens_estimated, searches } = item;
  // The name of a version in the answer is no change that a person would look for.
  const changes = fixups.filter((name) => name !== "model-name" || !hasOneName(item)).length;
  return [
    searches === null ? "" : plural(searches, "web search", "web searches"),
    // After a tool has run, the model is asked again.
    attempts.length > 1 && !attempts.every(hasAnswered) ? plural(attempts.length, "attempt") : "",
    changes > 0 ? plural(changes, "change") : "",
    dropped.length > 0 ? plural(dropped.length, "unsupported field") : "",
    tokens_estimated ? "estimated tokens" : "",
  ].filter(Boolean);
}

/** Whether the attempt gave a part of the reply. */
export const hasAnswered = ({ status, error }: ShownEntry["attempts"][number]): boolean =>
  status !== undefined && status < 400 && error === undefined;

/** How a request ended; idle: somebody ended it, which is no fault. */
export const toneOf = ({ error_type }: Pick<ShownEntry, "error_type">): "good" | "idle" | "bad" =>
  error_type === null ? "good" : endedHere.has(error_type) ? "idle" : "bad";

/** The result of a request: its HTTP status and its stop reason or error. */
export function Status({ item }: { item: ShownEntry }): Markup {
  const tone = toneOf(item);
  return (
    <>
      <span class={`badge ${tone}`}>{item.http_status}</span>{" "}
      {item.error_type === null ? (
        item.stop_reason !== null && <Value of={item.stop_reason} max={24} />
      ) : (
        <span class={[tone === "bad" && "fault"]}>
          <Value of={item.error_type} max={30} />
        </span>
      )}
    </>
  );
}

function Nothing({ view, nothingYet }: { view: RequestsView; nothingYet: boolean }): Markup {
  if (nothingYet)
    return (
      <Empty title="No requests yet" link={["/admin/connect", "Connect a client"]} primary>
        Requests appear here as soon as a client sends one, with their model, account, result and cost.
      </Empty>
    );
  const filtered = chipsOf(view).length > 0;
  return (
    <Empty
      title={view.paged ? "No older requests" : "No matching requests"}
      link={["/admin/requests", "Show all requests"]}
    >
      {filtered ? "No request in the history matches all of these filters." : "This is the end of the history."}
    </Empty>
  );
}

export function Pager({ list, view }: { list: ShownPage; view: RequestsView }): Markup | false {
  if (list.items.length === 0) return false;
  const limit = view.limit === firstRows ? undefined : String(view.limit);
  const cursor_id = list.next_cursor_id;
  const exported = (format: string) => filteredPath("/admin/requests/export", view.filters, { format });
  return (
    <CursorPager
      newest={view.paged ? requestsPath(view.filters, { limit }) : undefined}
      older={cursor_id === null ? undefined : requestsPath(view.filters, { limit, cursor_id: String(cursor_id) })}
    >
      <p class="soft">
        Export all matching requests as{" "}
        <a href={exported("csv")} download="">
          CSV
        </a>{" "}
        or{" "}
        <a href={exported("json")} download="">
          JSON
        </a>
      </p>
    </CursorPager>
  );
}

/** Only the login for a saved github.com account; otherwise the whole account key. */
const nameOf = ({ account_id, account_key }: Pick<ShownEntry, "account_id" | "account_key">): string | null =>
  account_key === null || account_key === `github.com/${account_id?.toLowerCase()}` ? account_id : account_key;
