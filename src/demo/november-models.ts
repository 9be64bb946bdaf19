/**
 * The models that GitHub Copilot lists in November 2026, with their prices, as pi 1.6.0 of 20 November has them. Limits are
 * rounded; what is not public is invented. The columns are those of `models.ts`.
 */
export const november = `
claude-fable-5 | Claude Fable 5 | Anthropic | 0 | 1000000/872000/128000 | MC | claude-fable-5 | powerful max adaptive-only always-thinks retains search edits system-turns effort=low,medium,high,xhigh,max structured vision=5 | 1000/5000/100/1250
claude-fable-5.1 | Claude Fable 5.1 | Anthropic | 0 | 1000000/872000/128000 | MC | claude-fable-5-1 | powerful max adaptive-only always-thinks retains search edits free-choice system-turns effort=low,medium,high,xhigh,max structured vision=5 | 1000/5000/25/1250
claude-fable-5.2 | Claude Fable 5.2 | Anthropic | 0 | 1000000/872000/128000 | MC | claude-fable-5-2 | powerful max adaptive-only always-thinks retains search edits free-choice system-turns effort=low,medium,high,xhigh,max structured vision=5 | 800/4000/20/1000
claude-opus-4.8 | Claude Opus 4.8 | Anthropic | 0 | 1000000/872000/128000 | MC | claude-opus-4-8 | powerful paid adaptive-only search edits system-turns effort=low,medium,high,xhigh,max structured vision=5 | 500/2500/50/625
claude-opus-5 | Claude Opus 5 | Anthropic | 0 | 1000000/872000/128000 | MC | claude-opus-5 | powerful paid adaptive-only search edits system-turns effort=low,medium,high,xhigh,max structured vision=5 | 500/2500/50/625
claude-opus-5.5 | Claude Opus 5.5 | Anthropic | 0 | 1000000/872000/128000 | MC | claude-opus-5-5 | powerful paid adaptive-only always-thinks search edits texts free-choice bound system-turns effort=low,medium,high,xhigh,max structured vision=5 | 400/2000/20/500
claude-sonnet-4.6 | Claude Sonnet 4.6 | Anthropic | 0 | 1000000/936000/64000 | MC | claude-sonnet-4-6 | versatile paid adaptive search edits budget=1024-32000 effort=low,medium,high,max whole=16000 structured vision=5 | 300/1500/30/375
claude-sonnet-5 | Claude Sonnet 5 | Anthropic | 0 | 1000000/872000/128000 | MC | claude-sonnet-5 | versatile paid adaptive-only search edits effort=low,medium,high,xhigh,max structured vision=5 | 200/1000/20/250
claude-sonnet-5.5 | Claude Sonnet 5.5 | Anthropic | 0 | 1000000/872000/128000 | MC | claude-sonnet-5-5 | versatile paid adaptive-only search edits promo=50 free-choice bound system-turns effort=low,medium,high,xhigh,max structured vision=5 | 200/1000/10/250
claude-haiku-4.5 | Claude Haiku 4.5 | Anthropic | 0 | 200000/136000/64000 | MC | claude-haiku-4-5 | versatile no-search edits budget=1024-32000 whole=16000 structured vision=5 | 100/500/10/125
claude-haiku-5.5 | Claude Haiku 5.5 | Anthropic | 0 | 1000000/872000/128000 | MC | claude-haiku-5-5 | lightweight adaptive-only no-search edits long=100000 long-by=5/5 free-choice bound system-turns effort=low,medium,high,xhigh,max structured vision=5 | 10/50/1/12.5
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
gpt-6-luna | GPT-6 Luna | OpenAI | 0 | 1050000/922000/128000 | RW | gpt-6-luna-2026-11-01 | lightweight default no-search texts effort=none,low,medium,high structured vision=1 phases long=272000 | 10/50/1/12.5
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
