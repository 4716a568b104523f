// Replaces a program by DIGEST.br beside it, which the extension unpacks at its first start (src/daemon/unpack.ts).

import { createHash } from "node:crypto";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { brotliCompressSync, constants } from "node:zlib";

const [file = ""] = process.argv.slice(2);
const program = readFileSync(file);
const digest = createHash("sha256").update(program).digest("hex").slice(0, 16);
const params = { [constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_LGWIN]: 24, [constants.BROTLI_PARAM_SIZE_HINT]: program.length };
writeFileSync(join(dirname(file), `${digest}.br`), brotliCompressSync(program, { params }));
rmSync(file);
