// Puts a button beside each command that copies it. Everything works without it.

for (const command of navigator.clipboard ? document.querySelectorAll('.command') : []) {
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = 'Copy';
  button.setAttribute('aria-label', `Copy: ${command.textContent.trim()}`);
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(command.querySelector('code').textContent);
    button.textContent = 'Copied';
    setTimeout(() => { button.textContent = 'Copy'; }, 1500);
  });
  command.append(button);
}
