/** One model of the demo, as a row of its table says. */
export type Endpoint = "/chat/completions" | "/responses" | "ws:/responses" | "/v1/messages";

export interface Model {
  id: string;
  name: string;
  vendor: string;
  /** The vendor, which decides its form on /chat/completions. */
  family: "gpt" | "claude" | "gemini";
  kind: "chat" | "completion" | "embeddings";
  /** The id in its answers. */
  answersAs: string;
  units: number;
  limits?: { context: number; prompt: number; output: number };
  /** As listed; if undefined, the list does not have the member. */
  endpoints?: Endpoint[];
  budget?: { min: number; max: number };
  efforts: string[];
  reasons: boolean;
  /** The traits of the row: words and `key=value`. */
  traits: Map<string, string>;
  /** Credits per million tokens. */
  prices: { input: number; output: number; cacheRead: number; cacheWrite?: number };
}
