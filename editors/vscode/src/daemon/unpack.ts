import { randomUUID } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { access, constants, mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createBrotliDecompress } from "node:zlib";

/** The unpacked versions that are kept: the current one, and one that a daemon may still run. */
const keptVersions = 2;

/**
 * unpack unpacks the lashd of an extension into a directory, once for each version, and returns the directory of the program. The extension
 * has it as bin/DIGEST.br, which is half as large as it would be in the vsix. Without one, unpack returns undefined. Several windows may
 * unpack at the same time.
 */
export async function unpack(extensionDir: string, storage: string, name: string): Promise<string | undefined> {
  const packed = (await readdir(join(extensionDir, "bin")).catch(() => [])).find((file) => file.endsWith(".br"));
  if (packed === undefined) {
    return undefined;
  }
  const dir = join(storage, basename(packed, ".br"));
  const program = join(dir, name);
  if (!(await isExecutable(program))) {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const partial = `${program}.${randomUUID()}`;
    await pipeline(createReadStream(join(extensionDir, "bin", packed)), createBrotliDecompress(), createWriteStream(partial, { mode: 0o700 }));
    await rename(partial, program);
    await removeOld(storage);
  }
  return dir;
}

function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(() => true, () => false);
}

/** removeOld removes all but the newest versions. One that is in use may stay, on Windows. */
async function removeOld(storage: string) {
  const versions = await Promise.all((await readdir(storage)).map(async (name) => ({ name, at: (await stat(join(storage, name))).mtimeMs })));
  const old = versions.sort((a, b) => b.at - a.at).slice(keptVersions);
  await Promise.all(old.map(({ name }) => rm(join(storage, name), { recursive: true, force: true }).catch(() => undefined)));
}
