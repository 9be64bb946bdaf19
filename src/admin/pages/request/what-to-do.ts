/** What to do about a request that failed: by its error, else by its status. */
import type { ShownEntry } from "../../api/requests";

const byError: [error: RegExp, advice: string][] = [
  [/client_closed/, "The client ended the request, by its person or its own time limit. Nothing is wrong here."],
  [/cancelled/, "Somebody cancelled it on a page. Nothing is wrong here."],
  [
    /context_length/,
    "Compact the conversation in the client, or choose a model with a larger context on the page Models.",
  ],
  [/budget_unavailable/, "The database could not be asked about the budget. The page Health says whether it is back."],
  [/budget/, "The page Budgets says when it resets, and raises or removes it."],
  [
    /quota|additional_spend/,
    "The page Accounts says when the quota resets. With `fallbacks` in the config another model serves meanwhile; with `whenLimited` requests wait.",
  ],
  [
    /overloaded/,
    "The model's host has too much to do. Clients try again by themselves; with `fallbacks` in the config another model serves at once.",
  ],
  [
    /rate_limit|too_many_requests/,
    "Too many requests in a short time. The account serves again at the time on the page Accounts; a second account shares the load.",
  ],
  [/too_many_running/, "More requests run at the same time than are allowed. Wait for one to end."],
  [
    /model_not_(?:found|offered|allowed|enabled)/,
    "The page Models lists the names that can be used here. `modelAliases` in the config gives a model another name.",
  ],
  [
    /(?:invalid|expired)_api_key|no_client_key/,
    "The client sent no key that is known here. `dragoman connect <tool> --write` writes one into its settings.",
  ],
  [/no_account|accounts_failed/, "Sign in on the page Accounts: no account can serve this model now."],
  [
    /disconnected|timeout/,
    "The connection ended before the answer did. `dragoman doctor` shows where it breaks; clients try again by themselves.",
  ],
  [
    /upstream_bad_(?:reply|event)/,
    "Copilot's answer could not be read. If it happens again, `dragoman doctor --deep` makes a file for an issue.",
  ],
];

const byStatus: Record<number, string> = {
  400: "The request was not accepted as it was sent. The message names the part; a newer version of the client may mend it.",
  401: "Sign in again on the page Accounts, or check the client's key.",
  403: "The message names the right that is missing. Plans and policies are changed at GitHub.",
  404: "The page Models lists the names that can be used here.",
  413: "The request is too large. Compact the conversation, or leave out large files.",
  424: "A person must act; the message says how.",
  429: "A limit was reached. The page Accounts says until when.",
  500: "An error in dragoman or upstream. If it happens again, `dragoman doctor --report` makes a file for an issue.",
  502: "Copilot could not be reached or gave no proper answer. `dragoman doctor` shows where the connection breaks.",
  503: "Nothing can serve it now. The page Accounts says why.",
  504: "Copilot did not answer in time. Try again; `dragoman doctor` measures the way there.",
  529: "The model's host has too much to do. Try again in a moment, or let another model serve by `fallbacks` in the config.",
};

/** A sentence or two. */
export function whatToDo({ error_type, http_status }: Pick<ShownEntry, "error_type" | "http_status">): string {
  const [, advice] = byError.find(([error]) => error.test(error_type ?? "")) ?? [];
  return advice ?? byStatus[http_status] ?? "Try again. If it happens again, `dragoman doctor` looks for the cause.";
}
