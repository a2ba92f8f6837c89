// Mastra's own packages behind the bridge: names are translated, answers are never mended.
//
//   node adapter.mjs inmemory|libsql|pg|duckdb|elasticsearch|opensearch memory|storage PACKAGES
//
// With `memory`, messages go through Memory of @mastra/memory; with `storage`, through the storage class below it.
// Vector indices are always the vector class's own. PACKAGES is the folder in which node_modules lies.
import { AsyncLocalStorage } from 'node:async_hooks';
import { createRequire } from 'node:module';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Refused, serve, told, useClock } from './bridge.mjs';

const [, , engine, layer, packages] = process.argv;
const require = createRequire(join(packages, 'package.json'));

// The program's clock, before Mastra is loaded.
useClock();
const load = async name => import(pathToFileURL(require.resolve(name)));
const version = name => JSON.parse(readFileSync(join(packages, 'node_modules', name, 'package.json'))).version;

const { InMemoryStore } = await load('@mastra/core/storage');
const { Memory } = await load('@mastra/memory');
const ENGINES = {
  inmemory: { packages: ['@mastra/core'] },
  libsql: { packages: ['@mastra/libsql'] },
  pg: { packages: ['@mastra/pg'] },
  duckdb: { packages: ['@mastra/duckdb'] },
  elasticsearch: { packages: ['@mastra/elasticsearch'] },
  opensearch: { packages: ['@mastra/opensearch'] },
};
const mastra = engine === 'inmemory' ? {} : await load(ENGINES[engine].packages[0]);

const VECTORS = { vectors: true, index_types: ['hnsw'] };
const CAPABILITIES = {
  inmemory: { durable: false, clone: true },
  libsql: { ...VECTORS, metrics: ['cosine'], clone: true },
  pg: { ...VECTORS, index_types: ['ivfflat', 'hnsw', 'flat'], clone: true },
  duckdb: { ...VECTORS, index_types: ['flat'], storage: false, other_processes: false },
  elasticsearch: { ...VECTORS, storage: false },
  opensearch: { ...VECTORS, storage: false },
};
const SEMANTIC = { semantic_recall: true, resource_scope: true };

const absent = value => (value === null ? undefined : value);

// Opening: one storage and one vector store a client, as one process of a user's would have.

const kept = new Map();
/** What lives in this process alone, by namespace. */
const keep = (namespace, make) => kept.get(namespace) ?? kept.set(namespace, make()).get(namespace);
const file = (url, namespace) => join(url, `${namespace}.db`);
const quiet = thing => (thing.__setLogger?.({ debug() {}, info() {}, warn() {}, error() {}, trackException() {} }), thing);

const open = {
  inmemory: {
    storage: (url, namespace) => keep(namespace, () => new InMemoryStore()),
  },
  libsql: {
    storage: (url, namespace) => new mastra.LibSQLStore({ id: namespace, url: `file:${file(url, namespace)}` }),
    vector: (url, namespace) => new mastra.LibSQLVector({ id: namespace, url: `file:${file(url, namespace)}` }),
  },
  pg: {
    storage: (url, namespace) =>
      new mastra.PostgresStore({ id: namespace, connectionString: url, schemaName: namespace, max: 2 }),
    vector: (url, namespace) =>
      new mastra.PgVector({ id: namespace, connectionString: url, schemaName: namespace, max: 2 }),
  },
  duckdb: {
    vector: (url, namespace) => new mastra.DuckDBVector({ id: namespace, path: file(url, namespace) }),
  },
  elasticsearch: {
    vector: (url, namespace) => new mastra.ElasticSearchVector({ id: namespace, url }),
  },
  opensearch: {
    vector: (url, namespace) => new mastra.OpenSearchVector({ id: namespace, node: url }),
  },
}[engine];

const indexed = new Set();
/** Namespaces in which there may be indices. */
const initialised = new Set();
const emptiedHere = new Set();
/** Namespaces that this process has emptied. */

/** The tables of the memory domain are made once a namespace; Mastra makes all domains' at every start. */
async function storageOf(url, namespace) {
  const storage = quiet(open.storage(url, namespace));
  if (engine !== 'inmemory') storage.disableInit = true;
  const domain = await storage.getStore('memory');
  if (!initialised.has(namespace)) {
    if (engine === 'pg') await sql(url, `CREATE SCHEMA IF NOT EXISTS "${namespace}"`);
    await domain.init?.();
    initialised.add(namespace);
  }
  return { storage, domain };
}

let administrator;
/** A statement on a connection of the bridge's own. */
async function sql(url, text) {
  if (!administrator) {
    const { default: pg } = await load('pg');
    const connecting = new pg.Client({ connectionString: url });
    await connecting.connect();
    administrator = connecting;
  }
  return administrator.query(text);
}

async function closeAll(...stores) {
  for (const store of stores) {
    if (!store || engine === 'inmemory') continue;
    if (store.close) await store.close();
    else if (store.disconnect) await store.disconnect();
  }
}

// Names: messages and threads

const PARTS = {
  text: part => ({ type: 'text', text: part.text }),
  reasoning: part => ({ type: 'reasoning', reasoning: part.text, details: [{ type: 'text', text: part.text }] }),
  file: part => ({ type: 'file', mimeType: part.media_type, data: part.url, filename: absent(part.filename) }),
  tool: part => ({
    type: 'tool-invocation',
    toolInvocation: {
      state: (part.error ?? null) !== null ? 'output-error' : (part.output ?? null) === null ? 'call' : 'result',
      toolCallId: part.tool_call_id,
      toolName: part.tool_name,
      args: part.input,
      result: absent(part.output),
      errorText: absent(part.error),
    },
  }),
};

function partFrom(part) {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text };
    case 'reasoning':
      return { type: 'reasoning', text: part.reasoning || part.details?.map(detail => detail.text ?? '').join('') };
    case 'file':
      return { type: 'file', media_type: part.mimeType, url: part.data, filename: part.filename };
    case 'tool-invocation': {
      const { toolCallId, toolName, args, result, errorText } = part.toolInvocation;
      const ended = { output: result, error: errorText };
      return { type: 'tool', tool_call_id: toolCallId, tool_name: toolName, input: args, ...ended };
    }
    default:
      return { type: 'text', text: `unknown part ${JSON.stringify(part)}` };
  }
}

function contentTo(content) {
  if (typeof content === 'string') return { format: 2, parts: [{ type: 'text', text: content }], content };
  if (!Array.isArray(content)) return content;
  return { format: 2, parts: content.map(part => PARTS[part?.type]?.(part) ?? part) };
}

/** A message that was saved as a string has `content` beside its one part, as Mastra's own messages do. */
function contentFrom({ content, parts }) {
  return typeof content === 'string' && (parts?.length ?? 0) <= 1 ? content : (parts ?? []).map(partFrom);
}

const messageFrom = message => ({
  id: message.id,
  thread_id: message.threadId,
  resource_id: message.resourceId ?? '',
  role: message.role,
  content: contentFrom(message.content),
  metadata: message.content.metadata ?? {},
  created_at: message.createdAt,
});

function threadFrom(thread) {
  const { clone, ...metadata } = thread.metadata ?? {};
  return {
    id: thread.id,
    resource_id: thread.resourceId,
    title: thread.title ?? '',
    // Mastra keeps a clone's lineage under this key of the metadata.
    metadata: clone?.sourceThreadId ? metadata : (thread.metadata ?? {}),
    created_at: thread.createdAt,
    updated_at: thread.updatedAt,
    clone: clone?.sourceThreadId
      ? {
          source_thread_id: clone.sourceThreadId,
          cloned_at: typeof clone.clonedAt === 'string' ? new Date(clone.clonedAt) : clone.clonedAt,
          last_message_id: clone.lastMessageId ?? null,
        }
      : null,
  };
}

const orderTo = order =>
  order && typeof order === 'object'
    ? { field: { created_at: 'createdAt', updated_at: 'updatedAt' }[order.field] ?? order.field, direction: order.direction }
    : absent(order);

function filterTo(filter) {
  if (!filter || typeof filter !== 'object') return absent(filter);
  const range = filter.date_range;
  return {
    ...(filter.metadata != null && { metadata: filter.metadata }),
    ...(filter.resource_id != null && { resourceId: filter.resource_id }),
    ...(range && {
      dateRange: {
        start: absent(range.start),
        end: absent(range.end),
        startExclusive: range.start_exclusive,
        endExclusive: range.end_exclusive,
      },
    }),
  };
}

const includeTo = include =>
  Array.isArray(include)
    ? include.map(entry => ({
        id: entry?.id,
        threadId: absent(entry?.thread_id),
        withPreviousMessages: absent(entry?.with_previous_messages),
        withNextMessages: absent(entry?.with_next_messages),
      }))
    : absent(include);

const indexConfigTo = config =>
  config && {
    ...(config.type && { type: config.type }),
    ...(config.metric && { metric: config.metric }),
    ...(config.lists != null && { ivf: { lists: config.lists } }),
    ...((config.m != null || config.ef_construction != null) && {
      hnsw: { m: absent(config.m), efConstruction: absent(config.ef_construction) },
    }),
  };

function configTo(config) {
  if (!config) return undefined;
  const { last_messages: last, semantic_recall: recall } = config;
  return {
    ...(last != null && { lastMessages: last }),
    ...(recall !== undefined && {
      semanticRecall:
        recall && typeof recall === 'object'
          ? {
              topK: recall.top_k,
              messageRange: recall.message_range,
              scope: recall.scope,
              ...(recall.filter != null && { filter: recall.filter }),
              ...(recall.threshold != null && { threshold: recall.threshold }),
              ...(recall.index_config != null && { indexConfig: indexConfigTo(recall.index_config) }),
            }
          : recall,
    }),
  };
}

// Messages

const recalls = new AsyncLocalStorage();
/** The recall at hand: what the vector store found, and what Memory then asked of the storage. */
const clones = new AsyncLocalStorage();
/** The runtime of the clone at hand, whose ids Mastra takes from crypto.randomUUID. */
const randomUUID = globalThis.crypto.randomUUID.bind(globalThis.crypto);
globalThis.crypto.randomUUID = () => clones.getStore()?.askNow('new_id') ?? randomUUID();

/** Watches what Memory asks of the classes below it; nothing is changed on the way. */
function watch(domain, vector) {
  const { copyThread, listMessages } = domain;
  domain.copyThread = args => clones.run(domain.runtime, () => copyThread.call(domain, args));
  domain.listMessages = args => {
    const seen = recalls.getStore();
    if (seen) seen.included = args.include ?? [];
    return listMessages.call(domain, args);
  };
  if (!vector) return;
  const query = vector.query.bind(vector);
  vector.query = async args => {
    const found = await query(args);
    const seen = recalls.getStore();
    for (const row of seen ? found : []) seen.scores.set(row.metadata?.message_id, row.score);
    return found;
  };
}

async function openMemory({ url, namespace, config, embedder }, opening) {
  const { storage, domain } = await storageOf(url, namespace);
  const vector = layer === 'memory' && embedder && open.vector ? quiet(open.vector(url, namespace)) : undefined;
  if (vector) indexed.add(namespace);
  let runtime = opening;
  if (!domain.watched) watch(domain, vector);
  domain.watched = true;
  const model = embedder && {
    specificationVersion: 'v2',
    provider: 'memassay',
    modelId: embedder.name,
    maxEmbeddingsPerCall: 1000,
    supportsParallelCalls: true,
    doEmbed: async ({ values }) => {
      try {
        return { embeddings: await runtime.ask('embed', { texts: values, kind: 'document' }) };
      } catch (error) {
        throw new Refused('embedder_error', error.message);
      }
    },
  };
  // The storage classes know nothing of Memory's options.
  const memory =
    layer === 'memory' &&
    quiet(new Memory({ storage, vector, embedder: vector && model, options: configTo(config) ?? {} }));
  const target = memory || domain;
  const settled = async () => memory && memory.settled();
  let indexName;
  if (vector) ({ indexName } = await memory.createEmbeddingIndex(embedder.dimension, memory.getMergedThreadConfig({})));

  const owner = async threadId =>
    typeof threadId === 'string' ? (await target.getThreadById({ threadId }))?.resourceId : undefined;

  const calls = {
    async create_thread({ id, resource_id, title, metadata, created_at }) {
      const threadId = id ?? (await runtime.ask('new_id'));
      const given = { threadId, resourceId: resource_id, title: absent(title), metadata: absent(metadata) };
      if (memory && created_at === null) return threadFrom(await memory.createThread(given));
      const at = created_at ?? runtime.now();
      const thread = { ...given, id: threadId, createdAt: at, updatedAt: at };
      delete thread.threadId;
      return threadFrom(await target.saveThread({ thread }));
    },

    async get_thread({ thread_id, resource_id }) {
      const found = await target.getThreadById({ threadId: thread_id, resourceId: absent(resource_id) });
      return found && threadFrom(found);
    },

    async update_thread({ thread_id, title, metadata }) {
      const changed = { id: thread_id, title: absent(title), metadata: absent(metadata) };
      return threadFrom(await target.updateThread(changed));
    },

    async list_threads({ filter, order_by, page, per_page }) {
      const found = await target.listThreads({
        filter: filterTo(filter),
        orderBy: orderTo(order_by),
        page: absent(page),
        perPage: absent(per_page),
      });
      return {
        threads: found.threads.map(threadFrom),
        total: found.total,
        page: found.page,
        per_page: found.perPage,
        has_more: found.hasMore,
      };
    },

    async delete_thread({ thread_id }) {
      const result = await (memory ? memory.deleteThread(thread_id) : domain.deleteThread({ threadId: thread_id }));
      await settled();
      return result;
    },

    async clone_thread(given) {
      const newThreadId = given.new_thread_id ?? (await runtime.ask('new_id'));
      domain.runtime = runtime;
      const { thread, clonedMessages, messageIdMap } = await target.cloneThread({
        sourceThreadId: given.source_thread_id,
        newThreadId,
        resourceId: absent(given.resource_id),
        title: absent(given.title),
        metadata: absent(given.metadata),
        options: {
          messageLimit: absent(given.message_limit),
          messageFilter: {
            startDate: absent(given.start),
            endDate: absent(given.end),
            messageIds: absent(given.message_ids),
          },
        },
      });
      return {
        thread: threadFrom(thread),
        cloned_messages: clonedMessages.map(messageFrom),
        id_map: messageIdMap instanceof Map ? Object.fromEntries(messageIdMap) : (messageIdMap ?? {}),
      };
    },

    async list_clones({ source_thread_id, resource_id }) {
      if (!memory) throw new Refused('unsupported', 'the storage classes list no clones');
      return (await memory.listClones(source_thread_id, absent(resource_id))).map(threadFrom);
    },

    async save_messages({ messages, thread_config }) {
      const owners = new Map();
      const batch = [];
      for (const message of Array.isArray(messages) ? messages : []) {
        const { thread_id: threadId, metadata } = message ?? {};
        // Mastra wants every message's resource; absent, it is the thread's, and of an unknown thread somebody's.
        if (!owners.has(threadId)) owners.set(threadId, await owner(threadId));
        const content = contentTo(message?.content);
        if (metadata != null && content && typeof content === 'object') content.metadata = metadata;
        batch.push({
          id: message?.id,
          threadId,
          resourceId: message?.resource_id ?? owners.get(threadId) ?? 'nobody',
          role: message?.role,
          content,
          createdAt: message?.created_at ?? runtime.now(),
          type: 'text',
        });
      }
      const saved = await target.saveMessages({
        messages: Array.isArray(messages) ? batch : messages,
        memoryConfig: configTo(thread_config),
      });
      return saved.messages.map(messageFrom);
    },

    async update_messages({ updates, thread_config }) {
      const changes = Array.isArray(updates)
        ? updates.map(update => {
            const content = update?.content == null ? {} : contentTo(update.content);
            if (update?.metadata != null) content.metadata = update.metadata;
            return {
              id: update?.id,
              ...(update?.role != null && { role: update.role }),
              ...(Object.keys(content).length > 0 && { content }),
            };
          })
        : updates;
      const changed = await target.updateMessages({ messages: changes, memoryConfig: configTo(thread_config) });
      return changed.map(messageFrom);
    },

    async delete_messages({ ids }) {
      const result = await target.deleteMessages(ids);
      await settled();
      return result;
    },

    async recall(given) {
      const seen = { scores: new Map(), included: [] };
      const asked = {
        threadId: given.thread_id,
        resourceId: absent(given.resource_id),
        page: absent(given.page),
        perPage: absent(given.per_page),
        orderBy: orderTo(given.order_by),
        filter: filterTo(given.filter),
        include: includeTo(given.include),
      };
      for (const key of Object.keys(asked)) if (asked[key] === undefined) delete asked[key];
      if (!memory && given.vector_search_string != null)
        throw new Refused('configuration_error', 'the storage classes do not search');
      const found =
        !memory
          ? await domain.listMessages(asked)
          : await recalls.run(seen, () =>
              memory.recall({
                ...asked,
                vectorSearchString: absent(given.vector_search_string),
                threadConfig: configTo(given.thread_config),
              }),
            );
      return {
        messages: found.messages.map(messageFrom),
        total: found.total,
        page: found.page,
        per_page: found.perPage,
        has_more: found.hasMore,
        hits: seen.included
          .filter(entry => seen.scores.has(entry.id))
          .map(entry => ({ id: entry.id, score: seen.scores.get(entry.id) })),
      };
    },

    async semantic_index() {
      if (!vector) return null;
      return { ...(await describe(vector, indexName)), name: 'messages' };
    },

    async close() {
      await settled();
      await closeAll(storage, vector);
    },
  };
  return withRuntime(calls, given => (runtime = given));
}

/** Clients whose calls see the runtime of the request they answer. */
function withRuntime(calls, use) {
  return Object.fromEntries(
    Object.entries(calls).map(([name, call]) => [name, (args, given) => (given && use(given), call(args ?? {}))]),
  );
}

// Vectors

/** Mastra tells dimension, metric and count; pgvector's class the index, too. */
async function describe(vector, indexName) {
  const found = await vector.describeIndex({ indexName });
  const { type, config } = found;
  return {
    dimension: found.dimension,
    metric: found.metric,
    count: Number(found.count),
    config: {
      ...(type && { type }),
      ...(type === 'hnsw' && { m: config?.m, ef_construction: config?.efConstruction }),
      ...(type === 'ivfflat' && { lists: config?.lists }),
    },
  };
}

// Search engines keep all indices in one place, so that a namespace is a prefix there.
const shared = engine === 'elasticsearch' || engine === 'opensearch';

/** Mastra has no call that reads vectors by id: what it stored is read with the engine's own client. */
const stored = {
  async libsql(vector, indexName, ids) {
    const marks = ids.map(() => '?').join(',');
    const found = await vector.turso.execute({
      sql: `SELECT vector_id, vector_extract(embedding) AS embedding, metadata FROM "${indexName}" WHERE vector_id IN (${marks})`,
      args: ids,
    });
    return found.rows.map(row => [row.vector_id, JSON.parse(row.embedding), JSON.parse(row.metadata)]);
  },
  async pg(vector, indexName, ids) {
    const { tableName } = vector.getTableName(indexName);
    const text = `SELECT vector_id, embedding::text, metadata FROM ${tableName} WHERE vector_id = ANY($1)`;
    const found = await vector.pool.query(text, [ids]);
    return found.rows.map(row => [row.vector_id, JSON.parse(row.embedding), row.metadata]);
  },
  async duckdb(vector, indexName, ids) {
    const found = [];
    for (const id of ids) {
      const text = `SELECT id, vector::VARCHAR AS vector, metadata::VARCHAR AS metadata FROM "${indexName}" WHERE id = ?`;
      for (const row of await vector.runQuery(text, [id]))
        found.push([row.id, JSON.parse(row.vector), JSON.parse(row.metadata)]);
    }
    return found;
  },
  async elasticsearch(vector, index, ids) {
    const found = await vector.client.mget({ index, ids, _source_exclude_vectors: false });
    return found.docs.filter(doc => doc.found).map(doc => [doc._id, doc._source.embedding, doc._source.metadata]);
  },
  async opensearch(vector, index, ids) {
    const { body } = await vector.client.mget({ index, body: { ids } });
    return body.docs.filter(doc => doc.found).map(doc => [doc._id, doc._source.embedding, doc._source.metadata]);
  },
}[engine];

async function openIndex({ url, namespace }) {
  if (!open.vector) throw new Refused('unsupported', 'there is no vector class');
  if (engine === 'pg') await sql(url, `CREATE SCHEMA IF NOT EXISTS "${namespace}"`);
  indexed.add(namespace);
  const vector = quiet(open.vector(url, namespace));
  const prefix = shared ? `${namespace}_` : '';
  const to = name => (typeof name === 'string' ? prefix + name : name);

  return {
    async create_index({ name, dimension, metric, config }) {
      const wanted = indexConfigTo(config);
      const usual = CAPABILITIES[engine].index_types;
      if (engine !== 'pg' && wanted && (!usual.includes(wanted.type ?? usual[0]) || wanted.hnsw || wanted.ivf))
        throw new Refused('unsupported', 'createIndex takes no configuration');
      await vector.createIndex({
        indexName: to(name),
        dimension,
        metric: absent(metric),
        ...(engine === 'pg' && wanted && { indexConfig: wanted }),
      });
    },
    async describe_index({ name }) {
      return { ...(await describe(vector, to(name))), name };
    },
    async list_indexes() {
      const names = await vector.listIndexes();
      return names.filter(name => name.startsWith(prefix)).map(name => name.slice(prefix.length));
    },
    async drop_index({ name }) {
      await vector.deleteIndex({ indexName: to(name) });
    },
    async upsert_vectors({ name, vectors }) {
      const rows = Array.isArray(vectors) ? vectors : [];
      const ids = await vector.upsert({
        indexName: to(name),
        ids: rows.map(row => row?.id),
        vectors: rows.map(row => row?.vector),
        metadata: rows.map(row => row?.metadata ?? {}),
      });
      return ids.length;
    },
    async get_vectors({ name, ids }) {
      await vector.describeIndex({ indexName: to(name) });
      if (!Array.isArray(ids) || !ids.length) return [];
      const rows = new Map((await stored(vector, to(name), ids)).map(row => [row[0], row]));
      const found = [...new Set(ids)].filter(id => rows.has(id)).map(id => rows.get(id));
      // Engines print float32 in as few digits as tell it from its neighbours.
      return found.map(([id, components, metadata]) => ({ id, vector: Array.from(components, Math.fround), metadata }));
    },
    async update_vector({ name, id, vector: components, metadata }) {
      const update = { vector: absent(components), metadata: absent(metadata) };
      return vector.updateVector({ indexName: to(name), id, update });
    },
    async delete_vectors({ name, ids, filter }) {
      return vector.deleteVectors({ indexName: to(name), ids: absent(ids), filter: absent(filter) });
    },
    async query_vectors({ name, vector: components, top_k, filter, min_score }) {
      if (min_score !== null && engine !== 'libsql' && engine !== 'pg')
        throw new Refused('unsupported', 'query takes no least score');
      const found = await vector.query({
        indexName: to(name),
        queryVector: components,
        topK: absent(top_k),
        filter: absent(filter),
        ...(min_score !== null && { minScore: min_score }),
      });
      return found.map(row => ({ id: row.id, score: row.score, metadata: row.metadata ?? {} }));
    },
    async close() {
      await closeAll(vector);
    },
  };
}

// Errors: Mastra's say in words what the specification's say by their code

const WORDS = [
  [/No thread found|[Tt]hread .*not found/, 'thread_not_found'],
  [/is for resource with id|does not belong to resource/, 'ownership_mismatch'],
  [/no such table|relation "[^"]*" does not exist|[Ii]ndex .*(not found|does not exist)|[Tt]able .* (not found|does not exist)/, 'index_not_found'],
  [/index_not_found_exception|no such index/, 'index_not_found'],
  [/already exists/, 'already_exists'],
  [/requires (a vector store|an embedder)|no resourceId was provided/, 'configuration_error'],
  [/[Ff]ilter|[Oo]perator|[Mm]etadata key/, 'invalid_filter'],
  [/[Dd]imension|finite number|NaN|zero (magnitude|vector)/, 'invalid_vector'],
];

function chain(error) {
  const found = [];
  for (let each = error; each && found.length < 8; each = each.cause ?? each.lastError) found.push(each);
  return found;
}

function named(error, call) {
  const causes = chain(error);
  const refused = causes.find(each => each instanceof Refused);
  if (refused) return told(refused);
  const message = [...new Set(causes.flatMap(each => [each.message, each.details?.message ?? []].flat()))].join(': ');
  if (/Cannot read|is not a function|is not iterable|Cannot convert/.test(message)) return { ...told(error), message };
  const [, code] = WORDS.find(([words]) => words.test(message)) ?? [];
  if (code) return { code: call === 'create_index' && code === 'invalid_vector' ? 'invalid_request' : code, message };
  const users = causes.some(each => each.category === 'USER') || /\b(must be|[Ii]nvalid|required|too large|No updates)\b/.test(message);
  return users ? { code: 'invalid_request', message } : { ...told(error), message };
}

async function dropIndices(url, namespace) {
  const index = await openIndex({ url, namespace });
  try {
    for (const name of await index.list_indexes()) await index.drop_index({ name });
  } finally {
    await index.close();
  }
}

function removeFiles(url, namespace) {
  for (const end of ['', '-wal', '-shm', '.wal']) rmSync(file(url, namespace) + end, { force: true });
}

/** Empties the tables of the memory domain in one round trip, and drops those of indices. */
const emptied = namespace => `DO $$
  DECLARE name text;
  BEGIN
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = '${namespace}' LOOP
      IF name LIKE 'mastra\\_%' THEN EXECUTE format('DELETE FROM %I.%I', '${namespace}', name);
      ELSE EXECUTE format('DROP TABLE %I.%I CASCADE', '${namespace}', name);
      END IF;
    END LOOP;
  END $$`;

serve({
  async hello({ protocol, url }) {
    const own = ENGINES[engine].packages[0];
    const names = [...new Set([own, '@mastra/core', ...(layer === 'memory' && open.storage ? ['@mastra/memory'] : [])])];
    if (engine === 'pg') await sql(url, 'CREATE EXTENSION IF NOT EXISTS vector');
    return {
      protocol,
      version: names.map(name => `${name} ${version(name)}`).join(', '),
      capabilities: { ...CAPABILITIES[engine], ...(layer === 'memory' && open.storage && open.vector && SEMANTIC) },
    };
  },
  open_memory: openMemory,
  open_index: openIndex,
  async reset_namespace({ url, namespace }) {
    if (engine === 'inmemory') kept.delete(namespace);
    else if (engine === 'pg') await sql(url, emptied(namespace));
    else if (engine === 'duckdb') removeFiles(url, namespace);
    else {
      // What a process before this one left there is not known, should it have been killed.
      const known = emptiedHere.has(namespace);
      emptiedHere.add(namespace);
      if (open.storage && (initialised.has(namespace) || !known)) {
        const { storage, domain } = await storageOf(url, namespace);
        await domain.dangerouslyClearAll();
        await closeAll(storage);
      }
      if (indexed.delete(namespace) || !known) await dropIndices(url, namespace);
    }
  },
  async drop_namespace({ url, namespace }) {
    kept.delete(namespace);
    initialised.delete(namespace);
    emptiedHere.delete(namespace);
    if (engine === 'pg') await sql(url, `DROP SCHEMA IF EXISTS "${namespace}" CASCADE`);
    if (shared) await dropIndices(url, namespace);
    if (engine === 'libsql' || engine === 'duckdb') removeFiles(url, namespace);
  },
  error: named,
});
