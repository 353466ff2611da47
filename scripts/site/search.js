// Finds sections as words are typed. The index is fetched with the first of them.
const box = document.querySelector('#search');
const list = document.querySelector('#found');
const base = document.documentElement.dataset.base;
let loading;

async function index() {
  const answer = await fetch(`${base}search.json`);
  if (!answer.ok) throw new Error(`search.json: ${answer.status}`);
  const found = new MiniSearch({ fields: ['title', 'text'], storeFields: ['title', 'page', 'url'] });
  found.addAll(await answer.json());
  return found;
}

box.addEventListener('input', async () => {
  const query = box.value.trim();
  if (query === '') return list.replaceChildren();
  try {
    loading ??= index();
    const results = (await loading).search(query, { prefix: true, fuzzy: 0.1, boost: { title: 3 } }).slice(0, 12);
    if (query !== box.value.trim()) return; // typed on meanwhile
    const rows = results.map(({ title, page, url }) => {
      const link = Object.assign(document.createElement('a'), { href: base + url, textContent: title });
      const row = document.createElement('li');
      row.append(link, ` ${page}`);
      return row;
    });
    list.replaceChildren(...(rows.length > 0 ? rows : ['Nothing found.']));
  } catch (error) {
    loading = undefined;
    list.replaceChildren(`The search does not work: ${error.message}`);
  }
});
document.addEventListener('keydown', (event) => {
  if (event.key === '/' && document.activeElement !== box) {
    event.preventDefault();
    box.focus();
  }
});
