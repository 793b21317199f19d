import { AppShell, Burger, Group, Loader, Center } from '@mantine/core';
import { useDisclosure, useHotkeys } from '@mantine/hooks';
import { Suspense } from 'react';
import { Link, Route, Switch } from 'wouter';
import { LiveIndicator } from '../live/LiveIndicator';
import { Logo } from '../parts/Logo';
import { AccountMenu } from './AccountMenu';
import { CommandPalette } from './CommandPalette';
import { ErrorBoundary } from './ErrorBoundary';
import { Navigation } from './Navigation';
import { NotFound } from './NotFound';
import { ROUTES } from './routes';
import { SearchButton } from './SearchButton';
import classes from './Shell.module.css';
import { ShortcutHelp } from './ShortcutHelp';
import { ThemeToggle } from './ThemeToggle';
import { useShortcuts } from './useShortcuts';
import { ZoneMenu } from './ZoneMenu';

export function Shell() {
  const [menu, { toggle, close }] = useDisclosure(false);
  const [palette, paletteActions] = useDisclosure(false);
  const [help, helpActions] = useDisclosure(false);
  useShortcuts({ palette: paletteActions.open, help: helpActions.open });
  useHotkeys([['Escape', close]]);
  return (
    <AppShell
      header={{ height: 56 }}
      navbar={{ width: 220, breakpoint: 'sm', collapsed: { mobile: !menu } }}
      padding={{ base: 'sm', sm: 'lg' }}
      classNames={classes}
    >
      <a
        href="#content"
        className={classes.skip}
        onClick={(event) => {
          event.preventDefault();
          document.getElementById('content')?.focus();
        }}
      >
        Skip to content
      </a>
      <AppShell.Header>
        <Group h="100%" px="md" justify="space-between" wrap="nowrap" gap="xs">
          <Group gap="sm" wrap="nowrap">
            <Burger opened={menu} onClick={toggle} hiddenFrom="sm" size="sm" aria-label="Pages" />
            <Link href="/" className={classes.home} aria-label="Duetime, overview">
              <Logo />
            </Link>
          </Group>
          <Group gap={6} wrap="nowrap">
            <SearchButton onClick={paletteActions.open} />
            <LiveIndicator />
            <ZoneMenu />
            <ThemeToggle />
            <AccountMenu onHelp={helpActions.open} />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="sm" aria-label="Pages">
        <Navigation onNavigate={close} />
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1}>
        <ErrorBoundary>
          <Suspense
            fallback={
              <Center h={240}>
                <Loader aria-label="Loading" />
              </Center>
            }
          >
            <Switch>
              {ROUTES.map(([path, Page]) => (
                <Route key={path} path={path}>
                  {(params) => (
                    <Page params={{ id: decodeURIComponent((params as { id?: string }).id ?? '') }} />
                  )}
                </Route>
              ))}
              <Route>
                <NotFound />
              </Route>
            </Switch>
          </Suspense>
        </ErrorBoundary>
      </AppShell.Main>
      <CommandPalette opened={palette} onClose={paletteActions.close} />
      <ShortcutHelp opened={help} onClose={helpActions.close} />
    </AppShell>
  );
}
