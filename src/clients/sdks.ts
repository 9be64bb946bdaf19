/** SDKs for programs, and curl: environment variables and a few lines of code instead of a settings file. */
import { type Client, noKey, type Snippet } from "./client";
import { shells } from "./shells";

const openai: Client = {
  name: "OpenAI SDK",
  speaks: "chat, responses, embeddings",
  dialect: "responses",
  known: /^(?:Async)?OpenAI/i,
  setUp({ url, key = noKey, models, model = models.gpt }) {
    const [base, apiKey, id] = [`${url}/v1`, key, model.id].map((text) => JSON.stringify(text));
    return {
      model,
      edits: [],
      variables: { OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: key },
      programs: [
        {
          name: "Python",
          text: [
            "from openai import OpenAI",
            "",
            `client = OpenAI(base_url=${base}, api_key=${apiKey})`,
            `reply = client.responses.create(model=${id}, input="Hello!")`,
            "print(reply.output_text)",
          ].join("\n"),
        },
        {
          name: "JavaScript",
          text: [
            'import OpenAI from "openai";',
            "",
            `const client = new OpenAI({ baseURL: ${base}, apiKey: ${apiKey} });`,
            `const reply = await client.responses.create({ model: ${id}, input: "Hello!" });`,
            "console.log(reply.output_text);",
          ].join("\n"),
        },
      ],
    };
  },
};

const anthropic: Client = {
  name: "Anthropic SDK",
  speaks: "messages",
  dialect: "messages",
  known: /^(?:Async)?Anthropic/i,
  setUp({ url, key = noKey, models, model = models.claude }) {
    const [base, apiKey, id] = [url, key, model.id].map((text) => JSON.stringify(text));
    return {
      model,
      edits: [],
      variables: { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: key },
      programs: [
        {
          name: "Python",
          text: [
            "from anthropic import Anthropic",
            "",
            `client = Anthropic(base_url=${base}, api_key=${apiKey})`,
            `reply = client.messages.create(model=${id}, max_tokens=1024,`,
            '    messages=[{"role": "user", "content": "Hello!"}])',
            "print(reply.content[0].text)",
          ].join("\n"),
        },
        {
          name: "JavaScript",
          text: [
            'import Anthropic from "@anthropic-ai/sdk";',
            "",
            `const client = new Anthropic({ baseURL: ${base}, apiKey: ${apiKey} });`,
            `const reply = await client.messages.create({ model: ${id}, max_tokens: 1024,`,
            '  messages: [{ role: "user", content: "Hello!" }] });',
            "console.log(reply.content[0].text);",
          ].join("\n"),
        },
      ],
    };
  },
};

const curl: Client = {
  name: "curl",
  speaks: "any",
  dialect: "chat",
  known: /^curl/i,
  setUp({ url, key = noKey, models, model = models.small }) {
    const messages = [{ role: "user", content: "Hello!" }];
    const stream = (shell: "bash" | "fish"): Snippet => {
      const { name, word, more } = shells[shell];
      return {
        name,
        shell,
        text: [
          `curl -N ${url}/v1/chat/completions -H 'content-type: application/json' -H ${word(`authorization: Bearer ${key}`)} ${more}`,
          `  -d ${word(JSON.stringify({ model: model.id, stream: true, messages }))}`,
        ].join("\n"),
      };
    };
    const { name, word, more } = shells.powershell;
    return {
      model,
      edits: [],
      variables: {},
      programs: [
        stream("bash"),
        stream("fish"),
        {
          name,
          shell: "powershell",
          text: [
            `Invoke-RestMethod ${url}/v1/chat/completions -Method Post -ContentType application/json ${more}`,
            `  -Headers @{ authorization = ${word(`Bearer ${key}`)} } ${more}`,
            `  -Body ${word(JSON.stringify({ model: model.id, messages }))}`,
          ].join("\n"),
        },
      ],
    };
  },
};

export const sdks = { "openai-sdk": openai, "anthropic-sdk": anthropic, curl } satisfies Record<string, Client>;
