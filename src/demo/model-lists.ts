/**
 * The models of each generation of billing. A row:
 * id | name | vendor | premium units | context/prompt/output | endpoints | id in answers | traits | input/output/cache-read/cache-write credits per million
 * Endpoints: C chat, R responses, W websocket, M messages, S decisions, - the key is missing on the wire.
 */

/** As they were listed until June 2026, when requests were counted. Yearly plans of before count them until they end. */
export const modelsInUnits = `
claude-opus-4.6-1m | Claude Opus 4.6 (1M context) | Anthropic | 6 | 1000000/936000/64000 | MC | claude-opus-4-6-20260205 | powerful paid adaptive budget=1024-32000 effort=low,medium,high structured vision=5 whole=16000 | 500/2500/50/625
claude-opus-4.6 | Claude Opus 4.6 | Anthropic | 3 | 200000/168000/32000 | MC | claude-opus-4-6-20260205 | powerful paid adaptive budget=1024-32000 effort=low,medium,high structured vision=1 whole=16000 | 500/2500/50/625
claude-opus-4.5 | Claude Opus 4.5 | Anthropic | 3 | 200000/168000/32000 | CM | claude-opus-4-5-20251101 | powerful paid budget=1024-32000 vision=5 whole=16000 | 500/2500/50/625
claude-sonnet-4.6 | Claude Sonnet 4.6 | Anthropic | 1 | 200000/168000/32000 | CM | claude-sonnet-4-6-20260217 | versatile paid adaptive budget=1024-32000 effort=low,medium,high structured vision=5 whole=16000 | 300/1500/30/375
claude-sonnet-4.5 | Claude Sonnet 4.5 | Anthropic | 1 | 200000/168000/32000 | CM | claude-sonnet-4-5-20250929 | versatile paid budget=1024-32000 vision=5 whole=16000 | 300/1500/30/375
claude-sonnet-4 | Claude Sonnet 4 | Anthropic | 1 | 216000/128000/16000 | CM | claude-sonnet-4-20250514 | versatile paid budget=1024-32000 vision=5 | 300/1500/30/375
claude-haiku-4.5 | Claude Haiku 4.5 | Anthropic | 0.33 | 200000/136000/64000 | CM | claude-haiku-4-5-20251001 | versatile budget=1024-32000 vision=5 whole=16000 | 100/500/10/125
gemini-3.1-pro-preview | Gemini 3.1 Pro | Google | 1 | 200000/136000/64000 | C | gemini-3.1-pro-preview | powerful edu preview budget=256-32000 effort=low,medium,high vision=10 | 200/1200/20
gemini-3-pro-preview | Gemini 3 Pro | Google | 1 | 200000/136000/64000 | - | gemini-3-pro-preview | powerful edu preview disabled family=gemini-3-pro budget=256-32000 effort=low,high vision=10 | 200/1200/20
gemini-3-flash-preview | Gemini 3 Flash | Google | 0.33 | 128000/128000/64000 | - | gemini-3-flash-preview | lightweight preview budget=256-32000 vision=10 | 50/300/5
gemini-2.5-pro | Gemini 2.5 Pro | Google | 1 | 128000/128000/64000 | - | gemini-2.5-pro | powerful edu budget=128-32768 vision=10 | 125/1000/12
gpt-5.4 | GPT-5.4 | OpenAI | 1 | 400000/272000/128000 | RW | gpt-5.4-2026-03-05 | powerful paid effort=low,medium,high,xhigh structured vision=1 phases | 250/1500/25
gpt-5.4-mini | GPT-5.4 mini | OpenAI | 0.33 | 400000/272000/128000 | RW | gpt-5.4-mini-2026-03-17 | lightweight no-policy effort=none,low,medium,high,xhigh structured vision=1 phases | 75/450/7
gpt-5.3-codex | GPT-5.3-Codex | OpenAI | 1 | 400000/272000/128000 | RW | gpt-5.3-codex | powerful edu effort=low,medium,high structured vision=1 phases | 175/1400/17.5
gpt-5.2 | GPT-5.2 | OpenAI | 1 | 400000/272000/128000 | CRW | gpt-5.2-2025-12-11 | versatile edu reasons structured vision=1 | 175/1400/17
gpt-5.1 | GPT-5.1 | OpenAI | 1 | 264000/128000/64000 | CRW | gpt-5.1-2025-11-13 | versatile edu effort=none,low,medium,high structured vision=1 | 125/1000/12
gpt-5-mini | GPT-5 mini | Azure OpenAI | 0 | 264000/128000/64000 | CRW | gpt-5-mini-2025-08-07 | lightweight effort=low,medium,high structured vision=1 | 0/0/0
gpt-4.1 | GPT-4.1 | Azure OpenAI | 0 | 128000/128000/16384 | - | gpt-4.1-2025-04-14 | versatile default fallback structured vision=1 | 0/0/0
gpt-4.1-2025-04-14 | GPT-4.1 | Azure OpenAI | 0 | 128000/128000/16384 | - | gpt-4.1-2025-04-14 | hidden family=gpt-4.1 no-policy structured vision=1 | 0/0/0
gpt-4o | GPT-4o | Azure OpenAI | 0 | 128000/64000/4096 | - | gpt-4o-2024-11-20 | versatile no-policy vision=1 | 0/0/0
gpt-4o-2024-11-20 | GPT-4o | Azure OpenAI | 0 | 128000/64000/16384 | - | gpt-4o-2024-11-20 | hidden family=gpt-4o no-policy vision=1 | 0/0/0
gpt-4o-mini | GPT-4o mini | Azure OpenAI | 0 | 128000/12288/4096 | - | gpt-4o-mini-2024-07-18 | hidden no-policy | 0/0/0
gpt-4o-mini-2024-07-18 | GPT-4o mini | Azure OpenAI | 0 | 128000/12288/4096 | - | gpt-4o-mini-2024-07-18 | hidden family=gpt-4o-mini no-policy | 0/0/0
gpt-4 | GPT 4 | Azure OpenAI | 0 | 32768/32768/4096 | - | gpt-4-0613 | hidden no-policy twice | 0/0/0
gpt-41-copilot | GPT-4.1 Copilot | Azure OpenAI | 0 | - | - | gpt-41-copilot | hidden family=gpt-4.1 no-policy completion | 0/0/0
text-embedding-3-small | Embedding V3 small | Azure OpenAI | 0 | - | - | text-embedding-3-small | hidden no-policy embeddings dimensions inputs=512 | 0/0/0`;

/**
 * As they are listed in November 2026, with their prices, as pi 1.6.0 of 20 November has them. Limits are rounded; what is not
 * public is invented.
 */
export const modelsInTokens = `
claude-fable-5 | Claude Fable 5 | Anthropic | 0 | 1000000/872000/128000 | MC | claude-fable-5 | powerful max adaptive-only always-thinks retains search edits system-turns effort=low,medium,high,xhigh,max structured vision=5 | 1000/5000/100/1250
claude-fable-5.1 | Claude Fable 5.1 | Anthropic | 0 | 1000000/872000/128000 | MC | claude-fable-5-1 | powerful max adaptive-only always-thinks retains search edits free-choice system-turns effort=low,medium,high,xhigh,max structured vision=5 | 1000/5000/25/1250
claude-fable-5.2 | Claude Fable 5.2 | Anthropic | 0 | 1000000/872000/128000 | MC | claude-fable-5-2 | powerful max adaptive-only always-thinks retains search edits free-choice system-turns effort=low,medium,high,xhigh,max structured vision=5 | 800/4000/20/1000
claude-opus-4.8 | Claude Opus 4.8 | Anthropic | 0 | 1000000/872000/128000 | MC | claude-opus-4-8 | powerful paid adaptive-only search edits system-turns effort=low,medium,high,xhigh,max structured vision=5 | 500/2500/50/625
claude-opus-5 | Claude Opus 5 | Anthropic | 0 | 1000000/872000/128000 | MC | claude-opus-5 | powerful paid adaptive-only search edits system-turns effort=low,medium,high,xhigh,max structured vision=5 | 500/2500/50/625
claude-opus-5.5 | Claude Opus 5.5 | Anthropic | 0 | 1000000/872000/128000 | M | claude-opus-5-5 | powerful paid adaptive-only always-thinks search edits texts free-choice bound system-turns effort=low,medium,high,xhigh,max structured vision=5 | 400/2000/20/500
claude-sonnet-4.6 | Claude Sonnet 4.6 | Anthropic | 0 | 1000000/936000/64000 | MC | claude-sonnet-4-6 | versatile paid adaptive search edits budget=1024-32000 effort=low,medium,high,max whole=16000 structured vision=5 | 300/1500/30/375
claude-sonnet-5 | Claude Sonnet 5 | Anthropic | 0 | 1000000/872000/128000 | MC | claude-sonnet-5 | versatile paid adaptive-only search edits effort=low,medium,high,xhigh,max structured vision=5 | 200/1000/20/250
claude-sonnet-5.5 | Claude Sonnet 5.5 | Anthropic | 0 | 1000000/872000/128000 | MC | claude-sonnet-5-5 | versatile paid adaptive-only search edits promo=50 free-choice bound system-turns effort=low,medium,high,xhigh,max structured vision=5 | 200/1000/10/250
claude-haiku-4.5 | Claude Haiku 4.5 | Anthropic | 0 | 200000/136000/64000 | MC | claude-haiku-4-5 | versatile no-search edits budget=1024-32000 whole=16000 structured vision=5 | 100/500/10/125
claude-haiku-5.5 | Claude Haiku 5.5 | Anthropic | 0 | 1000000/872000/128000 | M | claude-haiku-5-5 | lightweight adaptive-only no-search edits long=100000 long-by=5/5 free-choice bound system-turns effort=low,medium,high,xhigh,max structured vision=5 | 10/50/1/12.5
gemini-3.8-flash | Gemini 3.8 Flash | Google | 0 | 1000000/936000/64000 | C | gemini-3.8-flash | lightweight no-search budget=256-32000 effort=low,medium,high vision=10 | 75/375/7.5
gemini-4-argon | Gemini 4 Argon | Google | 0 | 1000000/936000/64000 | C | gemini-4-argon | powerful edu no-search budget=256-32000 effort=low,medium,high vision=10 | 200/1000/10
gemini-4-carbon | Gemini 4 Carbon | Google | 0 | 1000000/936000/64000 | C | gemini-4-carbon | powerful edu no-search budget=256-32000 effort=low,medium,high vision=10 | 200/1000/10
gemini-4-hydrogen | Gemini 4 Hydrogen | Google | 0 | 1000000/936000/64000 | C | gemini-4-hydrogen | lightweight edu no-search budget=256-32000 effort=low,medium,high vision=10 | 150/750/7.5
gemini-4-neon | Gemini 4 Neon | Google | 0 | 1000000/936000/64000 | C | gemini-4-neon | powerful edu no-search budget=256-32000 effort=low,medium,high vision=10 | 300/1500/15
kimi-k3 | Kimi K3 | Moonshot AI | 0 | 262144/229376/32768 | C | kimi-k3 | versatile no-search effort=low,high,max | 300/1500/30
gpt-5.3-codex | GPT-5.3-Codex | OpenAI | 0 | 400000/272000/128000 | RW | gpt-5.3-codex-2026-11-01 | versatile edu no-search effort=low,medium,high,xhigh structured vision=1 phases | 175/1400/17.5
gpt-5.4-nano | GPT-5.4 nano | OpenAI | 0 | 400000/272000/128000 | RW | gpt-5.4-nano-2026-11-01 | lightweight no-search effort=none,low,medium,high,xhigh structured vision=1 phases | 20/125/2
gpt-5.6-luna | GPT-5.6 Luna | OpenAI | 0 | 1050000/922000/128000 | RW | gpt-5.6-luna-2026-11-01 | lightweight no-search effort=low,medium,high structured vision=1 phases long=200000 | 20/120/2/25
gpt-5.6-sol | GPT-5.6 Sol | OpenAI | 0 | 1050000/922000/128000 | RW | gpt-5.6-sol-2026-11-01 | powerful paid search effort=low,medium,high,xhigh,max structured vision=1 phases long=272000 | 400/2000/40/500
gpt-5.6-terra | GPT-5.6 Terra | OpenAI | 0 | 1050000/922000/128000 | RW | gpt-5.6-terra-2026-11-01 | versatile paid search effort=low,medium,high,xhigh,max structured vision=1 phases long=272000 | 100/500/10/125
gpt-6-astra | GPT-6 Astra | OpenAI | 0 | 1050000/922000/128000 | RW | gpt-6-astra-2026-11-01 | powerful max disabled search effort=low,medium,high,xhigh,max structured vision=1 phases long=272000 | 1000/5000/100/1250
gpt-6-luna | GPT-6 Luna | OpenAI | 0 | 1050000/922000/128000 | RW | gpt-6-luna-2026-11-01 | lightweight default no-search texts two-summaries effort=none,low,medium,high structured vision=1 phases long=272000 | 10/50/1/12.5
gpt-6-sol | GPT-6 Sol | OpenAI | 0 | 1050000/922000/128000 | RW | gpt-6-sol-2026-11-01 | versatile paid search effort=none,low,medium,high,xhigh,max structured vision=1 phases long=272000 | 200/1000/20/250
gpt-6.1-sol | GPT-6.1 Sol | OpenAI | 0 | 1050000/922000/128000 | RW | gpt-6.1-sol-2026-11-01 | powerful paid search effort=low,medium,high,xhigh,max structured vision=1 phases long=272000 | 200/1000/10/250
gpt-6.1-terra | GPT-6.1 Terra | OpenAI | 0 | 1050000/922000/128000 | RW | gpt-6.1-terra-2026-11-01 | versatile paid search effort=none,low,medium,high,xhigh,max structured vision=1 phases long=272000 | 100/500/5/125
gpt-6.2-astra | GPT-6.2 Astra | OpenAI | 0 | 1050000/922000/128000 | RW | gpt-6.2-astra-2026-11-01 | powerful max search effort=low,medium,high,xhigh,max structured vision=1 phases long=272000 | 800/4000/40/1000
gpt-6.2-sol | GPT-6.2 Sol | OpenAI | 0 | 1050000/922000/128000 | RW | gpt-6.2-sol-2026-11-01 | powerful paid search effort=low,medium,high,xhigh,max structured vision=1 phases long=272000 | 200/1000/10/250
grok-4.5 | Grok 4.5 | xAI | 0 | 1000000/872000/128000 | R | grok-4.5 | powerful paid no-search effort=low,medium,high vision=1 long=200000 long-at structured | 300/1500/75
grok-4.6 | Grok 4.6 | xAI | 0 | 1000000/872000/128000 | R | grok-4.6 | powerful paid no-search effort=low,medium,high vision=1 long=200000 long-at structured | 300/1500/75
grok-4.7 | Grok 4.7 | xAI | 0 | 1000000/872000/128000 | R | grok-4.7 | powerful paid no-search effort=low,medium,high vision=1 long=200000 long-at structured | 300/1500/75
mai-code-1.1-flash | MAI-Code-1.1-Flash | Microsoft | 0 | 1000000/872000/128000 | R | mai-code-1.1-flash | lightweight no-search effort=low,medium,high structured | 10/50/1
mai-code-2 | MAI-Code-2 | Microsoft | 0 | 1000000/872000/128000 | R | mai-code-2 | versatile no-search effort=low,medium,high structured | 50/250/5
mai-code-2-flash | MAI-Code-2-Flash | Microsoft | 0 | 1000000/872000/128000 | R | mai-code-2-flash | lightweight no-search effort=low,medium,high structured | 5/25/0.5
microsoft-decision-1 | Microsoft Decision 1 | Microsoft | 0 | 32000/32000/1000 | S | microsoft-decision-1 | hidden no-policy | 4.2/4.2/4.2
text-embedding-3-small | Embedding V3 small | Azure OpenAI | 0 | - | - | text-embedding-3-small | hidden no-policy embeddings dimensions inputs=512 | 0/0/0`;
