/** What an account's organization allows to whom, and the ways in which the model host says so. Its model list shows nothing of it. */
import { plain, Refusal, refusal } from "./wire";

export interface Rights {
  /** The integration ids of the clients that the organization allows; all when missing. */
  clients?: string[];
  /** How other clients are refused: `403-words` when missing. */
  denial?: keyof typeof denials;
  /** The models that the client's integration may use; all when missing. */
  offered?: string[];
  /** Models that a policy excludes. */
  excluded?: string[];
  /** Another plan's host answers 403 instead of 421 (seen with Business seats in direct mode). */
  wrongHost?: 403;
}

const denials = {
  "403-words": () => plain(403, "unauthorized: not authorized to use this Copilot feature"),
  "403-empty": () => new Refusal(403, "", {}),
  "400-model": () =>
    refusal(400, "model_not_supported", "The requested model is not supported.", {
      param: "model",
      type: "invalid_request_error",
    }),
};

interface Entry {
  account: { host: string; rights?: Rights };
  host: string;
  headers: Record<string, string>;
  /** As in the body. */
  model: unknown;
}

/** @throws Refusal of a request to a model */
export function requireRights({ account, host, headers, model }: Entry): void {
  const { clients, denial = "403-words", offered, excluded, wrongHost } = account.rights ?? {};
  const client = headers["copilot-integration-id"] ?? "";
  if (wrongHost && account.host !== host) throw denials["403-words"]();
  if (clients && !clients.includes(client)) throw denials[denial]();
  if (offered && !offered.includes(String(model))) throw notOffered(client, offered);
  if (excluded?.includes(String(model)))
    throw refusal(
      400,
      "no_available_model_endpoints",
      "no endpoints available for this model under your current plan and policies",
    );
}

function notOffered(client: string, offered: string[]): Refusal {
  const words = `The requested model is not available for integrator "${client}". Available models: [${offered.join(" ")}].`;
  return refusal(
    400,
    "model_not_available_for_integrator",
    `${words} Verify the correct Copilot-Integration-Id header is being sent.`,
  );
}
