// What is wrong with the page that is shown, as a list of texts; scripts/look.py asks for it.
(document.documentElement.scrollWidth > innerWidth + 1 ? ['the page is too wide'] : []).concat(
[...document.querySelectorAll('main *, header *')].filter(e => {
  if (e.closest('mjx-assistive-mml')) return false;
  const box = e.getBoundingClientRect();
  if (!box.width || box.right <= innerWidth + 1) return false;
  for (let p = e; p; p = p.parentElement) {
    const of = getComputedStyle(p);
    if (of.position === 'fixed') return false;
    if (/auto|scroll|hidden/.test(of.overflowX)) return matchMedia('print').matches;
  }
  return true;
}).slice(0, 3).map(e => 'cut off: ' + e.tagName + '.' + e.className + ': '
  + e.textContent.trim().slice(0, 40))
).concat(
[...document.querySelectorAll('mjx-merror')].map(e => 'a formula: ' + e.textContent.trim())).concat(
[...document.querySelectorAll('.cell_input pre')].filter(e =>
  innerWidth > 1000 && e.scrollWidth > e.clientWidth
).slice(0, 3).map(e => 'code is wider than its column: ' + e.textContent.trim().slice(0, 40)))
