/** What a chat model is asked, whichever protocol it comes by. */
export interface ChatRequest {
  readonly model: string;
  readonly system: string;
  /** Without the system's. */
  readonly messages: readonly { readonly role: string; readonly content: string }[];
  readonly schema: Readonly<Record<string, unknown>> | undefined;
  /** Those that came as data in the messages. */
  readonly pictures?: readonly Buffer[];
}

export interface ChatOptions {
  /** What the model says. */
  readonly chat?: ((asked: ChatRequest) => string | Promise<string>) | undefined;
  /** How sure the model says it is of each word, when it is asked. Undefined: the service refuses to be asked. */
  readonly sureness?: number | undefined;
  /** Refuses to be held to a schema, as many services do. */
  readonly knowsNoSchema?: boolean | undefined;
  readonly hasNoUsage?: boolean | undefined;
}

export interface ChatAnswer {
  readonly status: number;
  readonly body: unknown;
  readonly tokens: number;
}

type Body = Readonly<Record<string, unknown>>;

export const CHAT_MODELS = ["llama-test", "gpt-test"];

export async function chatAsOllama(body: Body, options: ChatOptions, says?: Says): Promise<ChatAnswer> {
  const asked = askedOf(body, body.format);
  if (!CHAT_MODELS.includes(asked.model))
    return refused(404, { error: `model "${asked.model}" not found, try pulling it first` });
  const { text, tokens } = await said(asked, options, says);
  return {
    status: 200,
    tokens: tokens.prompt + tokens.answer,
    body: {
      model: asked.model,
      message: { role: "assistant", content: text },
      done: true,
      done_reason: says?.isCut ? "length" : "stop",
      ...(options.hasNoUsage ? {} : { prompt_eval_count: tokens.prompt, eval_count: tokens.answer }),
    },
  };
}

export async function chatAsOpenAi(body: Body, options: ChatOptions, says?: Says): Promise<ChatAnswer> {
  const format = body.response_format as { json_schema?: { schema?: unknown } } | undefined;
  const asked = askedOf(body, format?.json_schema?.schema);
  const error = (message: string) => ({ error: { message, type: "invalid_request_error", code: null } });
  if (!CHAT_MODELS.includes(asked.model))
    return refused(404, error(`The model \`${asked.model}\` does not exist`));
  if (format && options.knowsNoSchema)
    return refused(400, error("Unknown parameter: 'response_format.json_schema'"));
  if (body.logprobs && options.sureness === undefined)
    return refused(400, error("Unsupported parameter: 'logprobs'"));
  const { text, tokens } = await said(asked, options, says);
  const total = tokens.prompt + tokens.answer;
  const usage = { prompt_tokens: tokens.prompt, completion_tokens: tokens.answer, total_tokens: total };
  return {
    status: 200,
    tokens: total,
    body: {
      object: "chat.completion",
      model: asked.model,
      choices: [
        {
          index: 0,
          message: { role: "assistant", content: text, ...(says?.refusal && { refusal: says.refusal }) },
          finish_reason: says?.isCut ? "length" : "stop",
          ...(body.logprobs ? { logprobs: logprobsOf(text, options.sureness!) } : {}),
        },
      ],
      ...(options.hasNoUsage ? {} : { usage }),
    },
  };
}

/** What it is told to say, whatever it is asked. */
export interface Says {
  readonly text: string;
  /** It had no room to end the sentence. */
  readonly isCut?: boolean;
  readonly refusal?: string;
}

function logprobsOf(text: string, sureness: number) {
  return { content: text.split(/\s+/).map((token) => ({ token, logprob: Math.log(sureness) })) };
}

async function said(asked: ChatRequest, { chat = () => "Understood." }: ChatOptions, says: Says | undefined) {
  const text = says?.text ?? (await chat(asked));
  const prompt = [asked.system, ...asked.messages.map(({ content }) => content)].join(" ");
  return { text, tokens: { prompt: wordsIn(prompt), answer: wordsIn(text) } };
}

function wordsIn(text: string): number {
  return text.split(/\s+/).length;
}

function refused(status: number, body: unknown): ChatAnswer {
  return { status, body, tokens: 0 };
}

function askedOf(body: Body, schema: unknown): ChatRequest {
  const sent = body.messages as { role: string; content: string | readonly ContentPart[] }[];
  const all = sent.map(({ role, content }) => ({ role, content: textOf(content) }));
  const system = all.filter(({ role }) => role === "system").map(({ content }) => content);
  return {
    model: String(body.model).replace(/:latest$/, ""),
    system: system.join("\n"),
    messages: all.filter(({ role }) => role !== "system"),
    schema: schema as ChatRequest["schema"],
    pictures: sent.flatMap(({ content }) => (typeof content === "string" ? [] : picturesIn(content))),
  };
}

interface ContentPart {
  readonly type: string;
  readonly text?: string;
  readonly image_url?: { readonly url: string };
}

function textOf(content: string | readonly ContentPart[]): string {
  return typeof content === "string" ? content : content.map(({ text }) => text ?? "").join("\n");
}

function picturesIn(parts: readonly ContentPart[]): Buffer[] {
  const urls = parts.flatMap(({ image_url }) => image_url?.url ?? []);
  return urls.map((url) => Buffer.from(/^data:image\/(?:png|jpeg);base64,(.+)$/.exec(url)![1]!, "base64"));
}
