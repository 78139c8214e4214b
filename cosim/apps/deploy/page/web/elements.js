// Elements of the page. label: for who does not see them.

const byId = (id) => document.getElementById(id);

const element = (kind, properties, ...children) => {
  const made = document.createElement(kind);
  const { role, label, ...others } = properties;
  if (role) made.setAttribute("role", role);
  if (label) made.setAttribute("aria-label", label);
  Object.assign(made, others);
  made.append(...children);
  return made;
};
