/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The prompts: what each came to, and why. */
import type { Filters } from "../../../books/history/history";
import { formatCount, plural } from "../../../lib/format";
import { readQuery } from "../../../web/query";
import { listPrompts, type Prompt } from "../../api/prompts";
import { queries } from "../../api/query";
import { CostOf, Duration, Moment, Value } from "../../ui/format";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { Page } from "../../ui/layout";
import { firstRows, promptPath, promptsPath, requestsPath, withFirstRows } from "../../ui/links";
import { CursorPager, Empty, Table } from "../../ui/lists";
import type { PageContext } from "../../ui/page-context";
import { type StreamedPage, slot } from "../../ui/streamed-page";
import { ToolName } from "../../ui/tool-name";
import { Chips } from "../requests/filters";

export function promptsPage({ app, frame, url, member }: PageContext): StreamedPage {
  const now = app.now();
  const { limit, cursor_id, ...filters } = readQuery(withFirstRows(url).toString(), queries.requests);
  // Every row that a member sees is the member's own.
  if (member !== null) delete filters.member;
  return {
    page: (
      <Page frame={frame} title="Prompts" current="/admin/prompts">
        <p class="lead">
          What one thing that a person asked came to, with its subagents. The client says which requests belong
          together; nothing of what was asked is kept.
        </p>
        <Chips filters={filters} url={url} now={now} names={undefined} />
        {slot}
      </Page>
    ),
    parts: [
      async () => {
        const page = await listPrompts(app, filters, limit, cursor_id);
        return <List page={page} filters={filters} now={now} limit={limit} paged={cursor_id !== undefined} />;
      },
    ],
  };
}

type PromptList = Awaited<ReturnType<typeof listPrompts>>;

interface ListProps {
  page: PromptList;
  filters: Filters;
  now: number;
  limit: number;
  paged: boolean;
}

function List({ page, filters, now, limit, paged }: ListProps): Markup {
  const { items, next_cursor_id, without_prompt } = page;
  const query = { limit: limit === firstRows ? undefined : String(limit) };
  return (
    <>
      {items.length === 0 ? (
        <Empty title={paged ? "No more prompts" : "No prompts yet"}>
          Claude Code and Codex say which requests belong to a prompt; Claude Code does so once it is set up by the page{" "}
          <a href="/admin/connect">Connect</a>.
        </Empty>
      ) : (
        <PromptTable items={items} now={now} />
      )}
      {without_prompt.request_count > 0 && (
        <p class="soft">
          <a href={requestsPath({ ...filters, has_prompt: false })}>
            {plural(without_prompt.request_count, "request")}
          </a>{" "}
          named no prompt, for <CostOf of={without_prompt} />: what they belong to is unknown.
        </p>
      )}
      {(paged || next_cursor_id !== null) && (
        <CursorPager
          newest={paged ? promptsPath(filters, query) : undefined}
          older={
            next_cursor_id === null ? undefined : promptsPath(filters, { ...query, cursor_id: String(next_cursor_id) })
          }
        />
      )}
    </>
  );
}

const PromptTable = ({ items, now }: { items: Prompt[]; now: number }) => (
  <Table
    class="rows labelled prompts"
    caption="Prompts, newest first"
    rows={items}
    columns={[
      [
        "Time",
        (item) => (
          <a href={promptPath(item.prompt)}>
            <Moment at={item.started_at_ms} now={now} seconds={true} />
          </a>
        ),
      ],
      ["Client", (item) => <ToolName of={item.client_name} max={22} />],
      items.some(({ project }) => project !== null) && ["Project", projectOf],
      ["Why it cost that", ({ why }) => why],
    ]}
    numbers={[
      ["Requests", ({ request_count }) => formatCount(request_count)],
      ["Took", (item) => <Duration of={item.duration_ms} />],
      ["Cost", (item) => <CostOf of={item} />],
    ]}
  />
);

const projectOf = ({ project }: Prompt) =>
  project === null ? (
    <span class="soft">none</span>
  ) : (
    <a href={promptsPath({ project })}>
      <Value of={project} max={30} />
    </a>
  );
