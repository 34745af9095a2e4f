// A storage for Node: a folder with one small file for each unsettled intent. One file
// for all would lose entries as soon as two processes write; a file of its own is added
// whole or not at all (link), and replaced whole or not at all (rename). What is written
// is on the disk, file and folder, before anything is sent.
import { createHash, randomUUID } from "node:crypto";
import { link, mkdir, open, readFile, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";

export function fileStorage(folder) {
  if (typeof folder !== "string" || folder === "")
    throw new TypeError("fileStorage(folder) needs the name of a folder");
  // Names may hold anything; files may not.
  const fileOf = (name) => join(folder, `${createHash("sha256").update(name).digest("hex")}.json`);

  async function getItem(name) {
    const text = await readOrNull(fileOf(name));
    return text === null ? null : valueOf(text);
  }

  async function setItem(name, value) {
    const temporary = await writeAside(folder, name, value);
    await rename(temporary, fileOf(name));
    await syncFolder(folder);
  }

  // Where another process was faster, its value stays.
  async function addItem(name, value) {
    const temporary = await writeAside(folder, name, value);
    try {
      await link(temporary, fileOf(name));
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
    } finally {
      await rm(temporary);
    }
    await syncFolder(folder);
  }

  async function removeItem(name) {
    await rm(fileOf(name), { force: true });
    await syncFolder(folder);
  }

  async function keys() {
    const files = await readdir(folder).catch(noneIfAbsent) ?? [];
    const names = await Promise.all(files.filter((file) => /^[0-9a-f]{64}\.json$/.test(file))
      .map((file) => nameIn(join(folder, file))));
    return names.filter((name) => name !== null);
  }

  return { getItem, setItem, addItem, removeItem, keys };
}

const valueOf = (text) => {
  try {
    return String(JSON.parse(text).value);
  } catch {
    return text; // damaged: the client says so, and takes it for no entry of its own
  }
};

async function writeAside(folder, name, value) {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const temporary = join(folder, `.${randomUUID()}.tmp`);
  const file = await open(temporary, "wx", 0o600);
  try {
    await file.writeFile(JSON.stringify({ name, value }) + "\n");
    await file.sync();
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  } finally {
    await file.close();
  }
  return temporary;
}

async function syncFolder(folder) {
  const directory = await open(folder, "r").catch(noneIfAbsent);
  if (!directory) return; // there was nothing to remove
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

const readOrNull = (path) => readFile(path, "utf8").catch(noneIfAbsent);

async function nameIn(path) {
  const text = await readOrNull(path);
  try {
    return text === null ? null : JSON.parse(text).name;
  } catch {
    throw new Error(`${path} is damaged: look at it, then remove it`);
  }
}

function noneIfAbsent(error) {
  if (error.code === "ENOENT") return null;
  throw error;
}
