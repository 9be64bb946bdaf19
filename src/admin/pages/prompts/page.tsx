/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The prompts: what each came to, and why. */
import type { Filters } from "../../../books/history/history";
import type { PromptOrder } from "../../../books/history/prompts";
import { dayMs, formatCount, plural } from "../../../lib/format";
import { inDollars } from "../../../lib/money";
import { readQuery } from "../../../web/query";
import { listPrompts, type Prompt } from "../../api/prompts";
import { queries } from "../../api/query";
import { CostOf, Duration, Moment, Value } from "../../ui/format";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { Page } from "../../ui/layout";
import { promptPath, promptsPath, requestsPath, withFirstRows, withQuery } from "../../ui/links";
import { CursorPager, Empty, Table, Tabs } from "../../ui/lists";
import type { PageContext } from "../../ui/page-context";
import { type StreamedPage, slot } from "../../ui/streamed-page";
import { ToolName } from "../../ui/tool-name";
import { Chips } from "../requests/filters";
import { periods, withTimes } from "../requests/view";

export function promptsPage({ app, frame, url, member }: PageContext): StreamedPage {
  const now = app.now();
  const { limit, cursor_id, order, ...filters } = readQuery(
    withTimes(withFirstRows(url), now).toString(),
    queries.prompts,
  );
  // Every row that a member sees is the member's own.
  if (member !== null) delete filters.member;
  const chips = { ...filters };
  // The dearest of all time would read the whole history.
  if (order === "dearest") filters.from_ms ??= now - dearestDays * dayMs;
  const pathWith = (name: string, value: string | undefined) => {
    const query = Object.fromEntries(url.searchParams);
    return withQuery("/admin/prompts", { ...query, [name]: value, cursor_id: undefined });
  };
  return {
    page: (
      <Page frame={frame} title="Prompts" current="/admin/prompts">
        <p class="lead">
          What each of your prompts cost, including its subagents. The client says which requests belong together;
          nothing of what was asked is kept.
        </p>
        <div class="choices">
          <Tabs
            label="Order"
            items={[
              ["newest", "Newest"],
              ["dearest", "Dearest"],
            ]}
            chosen={order}
            pathOf={(name) => pathWith("order", name === "newest" ? undefined : name)}
          />
          <Tabs
            label="Period"
            items={[
              ...shownPeriods.map((name) => [name, periods[name]![1]] as const),
              ...(order === "dearest" ? [] : [["", "Any time"] as const]),
            ]}
            chosen={url.searchParams.get("period") ?? (order === "dearest" ? "7d" : "")}
            pathOf={(name) => pathWith("period", name || undefined)}
          />
        </div>
        <Chips {...{ filters: chips, url, now }} names={undefined} />
        {slot}
      </Page>
    ),
    parts: [
      async () => {
        const page = await listPrompts(app, filters, limit, cursor_id, order);
        const path = (cursor: string | undefined) =>
          withQuery("/admin/prompts", { ...Object.fromEntries(url.searchParams), cursor_id: cursor });
        return <List {...{ page, filters, now, order, path, paged: cursor_id !== undefined }} />;
      },
    ],
  };
}

const shownPeriods = ["24h", "7d", "30d"];
const dearestDays = 7;

type PromptList = Awaited<ReturnType<typeof listPrompts>>;

interface ListProps {
  page: PromptList;
  filters: Filters;
  now: number;
  order: PromptOrder;
  /** The page with this cursor. */
  path(cursor: string | undefined): string;
  paged: boolean;
}

function List({ page, filters, now, order, path, paged }: ListProps): Markup {
  const { items, next_cursor_id, with_prompt, without_prompt } = page;
  return (
    <>
      {items.length > 0 && (
        <p>
          <strong>
            <CostOf of={with_prompt} />
          </strong>{" "}
          <span class="soft">{inDollars(with_prompt)} </span>
          in all, for {plural(with_prompt.request_count, "request")} of these prompts
        </p>
      )}
      {items.length === 0 ? (
        <Empty title={paged ? "No more prompts" : "No prompts yet"}>
          Claude Code and Codex say which requests belong to a prompt; Claude Code does so once it is set up by the page{" "}
          <a href="/admin/connect">Connect</a>.
        </Empty>
      ) : (
        <PromptTable items={items} now={now} order={order} />
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
          newest={paged ? path(undefined) : undefined}
          older={next_cursor_id === null ? undefined : path(String(next_cursor_id))}
        />
      )}
    </>
  );
}

/** @param order For screen readers. */
export const PromptTable = ({ items, now, order }: { items: Prompt[]; now: number; order: PromptOrder }) => (
  <Table
    class="rows labelled prompts"
    caption={`Prompts, ${order} first`}
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
      ["Models", modelsOf],
      items.some(({ project }) => project !== null) && ["Project", projectOf],
      ["Breakdown", ({ why }) => why.replace(plainly, "").replace(/^./, (first) => first.toUpperCase())],
    ]}
    numbers={[
      ["Requests", ({ request_count }) => formatCount(request_count)],
      ["Took", (item) => <Duration of={item.duration_ms} />],
      ["Cost", (item) => <CostOf of={item} />],
    ]}
  />
);

/** Most prompts are so: the words would say nothing. */
const plainly = /^(?:All of it|9[5-9](?:\.\d)?%) in the conversation itself(?:; |\.)/;

const modelsOf = ({ models }: Prompt) =>
  models.slice(0, 3).map((model, at) => (
    <>
      {at > 0 && ", "}
      <a href={promptsPath({ upstream_model: model })}>
        <Value of={model} max={28} />
      </a>
    </>
  ));

const projectOf = ({ project }: Prompt) =>
  project === null ? (
    <span class="soft">none</span>
  ) : (
    <a href={promptsPath({ project })}>
      <Value of={project} max={30} />
    </a>
  );
