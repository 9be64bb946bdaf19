/** @jsxRuntime automatic @jsxImportSource #jsx */
/** The prompts: what each came to, and why. */
import { readQuery } from "../../../endpoint";
import { formatCount, plural } from "../../../format";
import type { Filters } from "../../../history/history";
import { listPrompts, type Prompt } from "../../api/prompts";
import { queries, writeFilters } from "../../api/query";
import { Duration, Moment, Value } from "../../ui/format";
import type { Markup } from "../../ui/jsx/jsx-runtime";
import { Page } from "../../ui/layout";
import { firstRows, promptPath, promptsPath, requestsPath, withFirstRows, withQuery } from "../../ui/links";
import { Head } from "../../ui/lists";
import type { PageContext } from "../../ui/page-context";
import { type StreamedPage, slot } from "../../ui/streamed-page";
import { ToolName } from "../../ui/tool-name";
import { CostOf } from "../requests/rows";
import { chipsOf } from "../requests/view";

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
        <Chips filters={filters} url={url} now={now} />
        {slot}
      </Page>
    ),
    parts: [
      async () => {
        const page = await listPrompts(app, filters, limit, cursor_id);
        return <List {...{ page, filters, now, limit, paged: cursor_id !== undefined }} />;
      },
    ],
  };
}

const Chips = ({ filters, url, now }: { filters: Filters; url: URL; now: number }) => {
  const chips = chipsOf({ filters, url, now, names: undefined });
  return (
    chips.length > 0 && (
      <ul class="chips" aria-label="Active filters">
        {chips.map(({ name, value, without }) => (
          <li>
            <a href={without}>
              {name}: <Value of={value} max={40} />
              <span class="hidden"> Remove this filter</span>
            </a>
          </li>
        ))}
      </ul>
    )
  );
};

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
  const hasProjects = items.some(({ project }) => project !== null);
  const next = next_cursor_id === null ? undefined : String(next_cursor_id);
  return (
    <>
      {items.length === 0 ? (
        <section class="empty">
          <h2>{paged ? "No more prompts" : "No prompts yet"}</h2>
          <p>
            Claude Code and Codex say which requests belong to a prompt. <a href="/admin/connect">Connect</a> sets
            Claude Code to send it.
          </p>
        </section>
      ) : (
        <table class="rows labelled">
          <caption class="hidden">Prompts, newest first</caption>
          <Head
            columns={["Time", "Client", ...(hasProjects ? ["Project"] : []), "Why it cost that"]}
            numbers={["Requests", "Took", "Cost"]}
          />
          <tbody>
            {items.map((item) => (
              <PromptRow item={item} hasProjects={hasProjects} now={now} />
            ))}
          </tbody>
        </table>
      )}
      {without_prompt.request_count > 0 && (
        <p class="soft">
          <a href={requestsPath({ ...filters, has_prompt: false })}>
            {plural(without_prompt.request_count, "request")}
          </a>{" "}
          named no prompt, for <CostOf of={without_prompt} />: what they belong to is unknown.
        </p>
      )}
      {(paged || next !== undefined) && (
        <div class="pager">
          <nav aria-label="Pages of the table">
            {paged && (
              <a class="button" href={promptsPath(filters)} rel="first">
                Newest
              </a>
            )}
            {next !== undefined && (
              <a
                class="button"
                href={withQuery("/admin/prompts", {
                  ...Object.fromEntries(writeFilters(filters)),
                  limit: limit === firstRows ? undefined : String(limit),
                  cursor_id: next,
                })}
                rel="next"
              >
                Older
              </a>
            )}
          </nav>
        </div>
      )}
    </>
  );
}

const PromptRow = ({ item, hasProjects, now }: { item: Prompt; hasProjects: boolean; now: number }) => (
  <tr>
    <th scope="row">
      <a href={promptPath(item.prompt)}>
        <Moment at={item.started_at_ms} now={now} seconds={true} />
      </a>
    </th>
    <td class="name">
      <ToolName of={item.client_name} max={22} />
    </td>
    {hasProjects && (
      <td data-label="Project" class="name">
        {item.project === null ? (
          <span class="soft">none</span>
        ) : (
          <a href={promptsPath({ project: item.project })}>
            <Value of={item.project} max={30} />
          </a>
        )}
      </td>
    )}
    <td>{item.why}</td>
    <td data-label="Requests" class="right num">
      {formatCount(item.request_count)}
    </td>
    <td data-label="Took" class="right">
      <Duration of={item.duration_ms} />
    </td>
    <td data-label="Cost" class="right">
      <CostOf of={item} />
    </td>
  </tr>
);
