// What the package `ai` makes of lists of UI messages: reads a JSON list of them, writes a JSON list of readings.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const require = createRequire(join(process.argv[2], 'package.json'));
const { safeValidateUIMessages, validateUIMessages, convertToModelMessages } = await import(
  pathToFileURL(require.resolve('ai'))
);

async function read(messages) {
  const checked = await safeValidateUIMessages({ messages });
  if (!checked.success) return { error: String(checked.error?.message ?? checked.error) };
  try {
    return { model: await convertToModelMessages(await validateUIMessages({ messages })) };
  } catch (error) {
    return { error: String(error?.message ?? error) };
  }
}

let input = '';
for await (const chunk of process.stdin.setEncoding('utf8')) input += chunk;
process.stdout.write(JSON.stringify(await Promise.all(JSON.parse(input).map(read))));
